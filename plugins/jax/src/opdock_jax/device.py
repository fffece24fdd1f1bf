"""A device of JAX: its buffers are plain `jax.Array`s, which nobody can write."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Iterator
from typing import Any, Final

import jax
import jax.numpy as jnp
import numpy as np

from opdock.plugin import (
    INTS,
    NUMBERS,
    BaseDevice,
    DeviceAttributes,
    DType,
    MemoryStats,
    as_dtype,
    dtypes,
    errors,
)  # fmt: skip
from opdock_jax.probe import ready

WORTH_SHARING: Final = 1 << 16
"""Bytes from which copying takes longer than lending memory to NumPy."""
HELD = NUMBERS | INTS | {dtypes.bool}
_ERRORS = {
    "RESOURCE_EXHAUSTED": errors.ResourceExhaustedError,
    "UNIMPLEMENTED": errors.UnimplementedError,
}


def told(error: jax.errors.JaxRuntimeError) -> Exception:
    """What XLA reports as the errors on which the runtime acts."""
    kind = _ERRORS.get(str(error).partition(":")[0])
    return error if kind is None else kind(None, None, str(error))


class _Memory:
    """The bytes of an array that lives as long as NumPy needs them, for reading and writing."""

    def __init__(self, array: jax.Array) -> None:
        self.array = array
        self.__array_interface__ = {
            "version": 3, "typestr": "|u1", "shape": (array.nbytes,),
            "data": (array.unsafe_buffer_pointer(), False),
        }  # fmt: skip


class JaxDevice(BaseDevice):
    """One `jax.Device`, whatever the hardware is.

    Attributes:
        results: large arrays that programs gave, by `id`: their memory is nobody else's.
    """

    def __init__(self, attributes: DeviceAttributes) -> None:
        super().__init__(attributes)
        (name,) = (f for f in attributes.features if f.startswith("jax:"))
        _, platform, number = name.split(":")
        found = {str(d.id): d for d in ready().local_devices(backend=platform)}
        if number not in found:
            raise RuntimeError(f"JAX has {[*found.values()]}, and no {name} now")
        self.place = found[number]
        self.dtypes = HELD
        self.on_host = platform == "cpu"
        self.results: dict[int, weakref.ref[jax.Array]] = {}
        # Where there is one CPU and no more, arrays are made on it, and no product is shortened.
        alone = jax.local_devices() == [self.place] and platform == "cpu"
        self._here: Any = contextlib.nullcontext if alone else self._among_several
        if platform in ("cpu", "cuda", "rocm", "gpu"):
            self.dlpack = self.upload(np.zeros(1, np.float32)).__dlpack_device__()

    @contextlib.contextmanager
    def computing(self) -> Iterator[None]:
        """Where JAX keeps 64 bits, makes arrays here and does not shorten the factors of products.

        All of it holds for this thread and this block: elsewhere JAX stays as its user set it.
        """
        try:
            with jax.enable_x64(True), self._here():
                yield
        except jax.errors.JaxRuntimeError as e:
            raise told(e) from None

    @contextlib.contextmanager
    def _among_several(self) -> Iterator[None]:
        precise = jax.config.jax_default_matmul_precision or "highest"
        with jax.default_device(self.place), jax.default_matmul_precision(precise):
            yield

    def upload(self, array: np.ndarray[Any, Any]) -> jax.Array:
        """A copy: the caller may change `array` afterwards."""
        if as_dtype(array.dtype) not in HELD:
            raise errors.UnimplementedError(None, None, f"JAX holds no {array.dtype}")
        # On the CPU an array of JAX may share this memory, so it has to be a copy of its own.
        return self.take(np.array(array, order="C"))

    def take(self, value: Any) -> jax.Array:
        """A host array or an array of any device on this one."""
        with self.computing():
            return jax.device_put(value, self.place)

    def download(self, buffer: jax.Array) -> np.ndarray[Any, Any]:
        """A fresh host array; waits for the values."""
        try:
            return np.array(buffer, order="C")
        except jax.errors.JaxRuntimeError as e:
            raise told(e) from None

    def gave(self, result: jax.Array) -> None:
        """Notes that memory is a program's result, which may be handed on."""
        if self.on_host and result.nbytes >= WORTH_SHARING:
            key, forget = id(result), self.results.pop
            self.results[key] = weakref.ref(result, lambda _: forget(key, None))

    def surrender(self, buffer: jax.Array) -> np.ndarray[Any, Any]:
        """The memory of a program's large result itself, where that is the host's."""
        try:
            if not self.results or self.results.pop(id(buffer), None) is None:
                return np.array(buffer, order="C")
            memory = np.asarray(_Memory(buffer.block_until_ready()))
        except jax.errors.JaxRuntimeError as e:
            raise told(e) from None
        return np.ndarray(buffer.shape, buffer.dtype, memory)

    def from_dlpack(self, buffer: Any) -> jax.Array:
        """An array over the memory of another library's."""
        try:
            with self.computing():
                # What lies in host memory counts as the first CPU's.
                return jax.device_put(jnp.from_dlpack(buffer), self.place)
        except errors.UnimplementedError as e:  # strides that JAX has no word for
            raise BufferError(e.message) from None

    def duplicate(self, buffer: Any) -> jax.Array:
        """A copy in memory of its own."""
        with self.computing():
            return jax.device_put(buffer, self.place, may_alias=False)

    def empty(self, shape: tuple[int, ...], dtype: DType) -> jax.Array:
        """Zeros: nobody could write to the memory later."""
        with self.computing():
            return jnp.zeros(shape, dtype.np).block_until_ready()

    def synchronize(self) -> None:
        """Waits for every array of this device."""
        with self.computing():
            for array in jax.live_arrays(self.place.client.platform):
                if self.place in array.devices():
                    array.block_until_ready()

    def trim(self) -> None:
        """Forgets what was compiled: JAX itself keeps all of it."""
        jax.clear_caches()

    def memory(self) -> MemoryStats:
        """What the allocator says, where it keeps count."""
        known = self.place.memory_stats() or {}
        return MemoryStats(
            in_use=known.get("bytes_in_use"), peak=known.get("peak_bytes_in_use"),
            limit=known.get("bytes_limit", self.attributes.memory_bytes),
        )  # fmt: skip
