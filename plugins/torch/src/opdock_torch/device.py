"""A device of PyTorch: its buffers are plain tensors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from opdock.plugin import (
    FLOATS,
    INTS,
    BaseDevice,
    DeviceAttributes,
    DType,
    MemoryStats,
    as_dtype,
    deterministic,
    dtypes,
    errors,
)  # fmt: skip
from opdock_torch.namespace import array_of, namespace_for, tensor_of

# PyTorch stores these as well but does not compute with them.
_WIDE_UNSIGNED = {dtypes.uint16, dtypes.uint32, dtypes.uint64}
_DOUBLE = {dtypes.float64, dtypes.complex128}
HELD = (FLOATS | INTS | {dtypes.bool, dtypes.complex64, dtypes.complex128}) - _WIDE_UNSIGNED


class TorchDevice(BaseDevice):
    """One `torch.device`, whatever the hardware is."""

    def __init__(self, attributes: DeviceAttributes) -> None:
        super().__init__(attributes)
        (name,) = (f for f in attributes.features if f.startswith("torch:"))
        self.place = torch.device(name.removeprefix("torch:"))
        self.module: Any = getattr(torch, self.place.type)
        if deterministic() and self.place.type != "cpu":
            torch.use_deterministic_algorithms(True)
        self.namespace = namespace_for(self.place)
        if self.place.type != "mps":
            self.dlpack = torch.empty(0, device=self.place).__dlpack_device__()
        self.dtypes = HELD - (_DOUBLE if self.place.type == "mps" else set())

    def upload(self, array: np.ndarray[Any, Any]) -> torch.Tensor:
        """A copy: the caller may change `array` afterwards."""
        if as_dtype(array.dtype) not in (self.dtypes or ()):
            raise errors.UnimplementedError(None, None, f"{self.place} holds no {array.dtype}")
        # On the CPU a tensor shares an array's memory, so the array has to be a copy of its own.
        return self.take(tensor_of(np.array(array, order="C")))

    def borrow(self, array: np.ndarray[Any, Any]) -> torch.Tensor:
        """On the CPU a tensor over the array; whether it may be written to is asked by PyTorch."""
        if not array.flags.carray or as_dtype(array.dtype) not in (self.dtypes or ()):
            return self.upload(array)
        return self.take(tensor_of(array))

    def take(self, tensor: torch.Tensor, *, copy: bool = False) -> torch.Tensor:
        """A tensor of any device on this one; with `copy` it is always another tensor."""
        try:
            return tensor.to(self.place, copy=copy)
        except torch.OutOfMemoryError as e:
            raise errors.ResourceExhaustedError(None, None, str(e)) from None

    def download(self, buffer: torch.Tensor) -> np.ndarray[Any, Any]:
        """A fresh host array; waits for the values."""
        return np.array(array_of(buffer.cpu().resolve_conj().resolve_neg()), order="C")

    def surrender(self, buffer: torch.Tensor) -> np.ndarray[Any, Any]:
        """The memory of a result itself, where it is the host's and holds nothing else."""
        whole = buffer.is_cpu and buffer.is_contiguous()
        plain = whole and buffer.untyped_storage().nbytes() == buffer.nbytes
        lazy = buffer.is_conj() or buffer.is_neg()
        return array_of(buffer) if plain and not lazy else self.download(buffer)

    def from_dlpack(self, buffer: Any) -> torch.Tensor:
        """A tensor over the memory of another library's array."""
        if any(step < 0 for step in getattr(buffer, "strides", ())):
            # PyTorch does not refuse these: it ends the process.
            raise BufferError("PyTorch takes no negative strides")
        return torch.from_dlpack(buffer)

    def empty(self, shape: tuple[int, ...], dtype: DType) -> torch.Tensor:
        """Uninitialized memory."""
        try:
            return torch.empty(shape, dtype=getattr(torch, dtype.name), device=self.place)
        except (torch.OutOfMemoryError, RuntimeError) as e:  # the CPU's allocator has no type
            raise errors.ResourceExhaustedError(None, None, str(e)) from None

    def synchronize(self) -> None:
        """Waits for the work that was started."""
        self.module.synchronize()

    def memory(self) -> MemoryStats:
        """What PyTorch's allocator says, where it keeps count."""
        if not hasattr(self.module, "max_memory_allocated"):
            return super().memory()
        in_use, peak = self.module.memory_allocated, self.module.max_memory_allocated
        limit = self.attributes.memory_bytes
        return MemoryStats(in_use=in_use(self.place), peak=peak(self.place), limit=limit)

    def configure(self, options: Mapping[str, Any]) -> None:
        """Takes "intra_op_parallelism_threads" (CPU) and "memory_fraction" (accelerators).

        Where results are to be the same bits for any number of threads, there is one.
        """
        threads = 1 if deterministic() else int(options.get("intra_op_parallelism_threads") or 0)
        fraction = float(options.get("memory_fraction") or 0)
        if self.place.type == "cpu" and threads:
            torch.set_num_threads(threads)
        elif fraction and hasattr(self.module, "set_per_process_memory_fraction"):
            self.module.set_per_process_memory_fraction(fraction, self.place)
