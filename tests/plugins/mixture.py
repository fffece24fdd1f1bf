"""Three backends in one file, for tests of copies between them.

LEFT and RIGHT hold NumPy arrays behind a class of their own, in host memory that both can describe
by DLPack. LATE computes when somebody asks for a value, and uploads in a thread: nothing that it
was given may be changed before.
"""

from __future__ import annotations

import threading

import array_api_compat.numpy
import numpy as np

from opdock.plugin import (
    NUMBERS,
    BackendSpec,
    BaseDevice,
    DeviceAttributes,
    KernelTable,
    Probe,
    dtypes,
    errors,
    hookimpl,
)


class SharedArray(np.ndarray):
    """A buffer of LEFT or RIGHT."""


class SharingDevice(BaseDevice):
    """Counts what is copied."""

    namespace = array_api_compat.numpy
    dtypes = NUMBERS - {dtypes.bfloat16} | {dtypes.bool}
    dlpack = (1, 0)
    uploads = downloads = shares = 0

    def upload(self, array):
        if array.dtype.kind in "VO":
            raise errors.UnimplementedError(None, None, f"no {array.dtype} here")
        self.uploads += 1
        return np.array(array, order="C").view(SharedArray)

    def download(self, buffer):
        self.downloads += 1
        return np.array(buffer, order="C", subok=False)

    def from_dlpack(self, buffer):
        taken = np.from_dlpack(buffer).view(SharedArray)
        self.shares += 1
        return taken

    def counts(self):
        """Uploads, downloads and shared values since the last call."""
        found = self.uploads, self.downloads, self.shares
        self.uploads = self.downloads = self.shares = 0
        return found


class LateBuffer:
    """A value, or what will compute it."""

    def __init__(self, shape, dtype, compute):
        self.shape, self.dtype, self._compute, self._value = tuple(shape), dtype, compute, None

    def get(self):
        if self._value is None:
            self._value = np.asarray(self._compute())
        return self._value


class LateDevice(BaseDevice):
    """Computes nothing before it must."""

    dlpack = (1, 0)
    dtypes = frozenset({dtypes.float32})

    def upload(self, array):
        if array.dtype != np.float32:
            raise errors.UnimplementedError(None, None, f"no {array.dtype} here")
        staged, box, wanted = np.array(array), [], threading.Event()

        def transfer():
            wanted.wait()
            box.append(staged.copy())

        thread = threading.Thread(target=transfer, daemon=True)
        thread.start()

        def wait():
            wanted.set()
            thread.join()
            return box[0]

        return LateBuffer(array.shape, array.dtype, wait)

    def download(self, buffer):
        return buffer.get().copy()

    def from_dlpack(self, buffer):
        array = np.from_dlpack(buffer)
        return LateBuffer(array.shape, array.dtype, lambda: array)


sharing, late = KernelTable(), KernelTable()
for op, ufunc in {"AddV2": np.add, "Mul": np.multiply, "Sub": np.subtract}.items():
    sharing.binder(op, T={dtypes.float32}, out=True)(lambda sig, ufunc=ufunc: ufunc)

    def bind(sig, ufunc=ufunc):
        def compute(a, b):
            shape = np.broadcast_shapes(a.shape, b.shape)
            return LateBuffer(shape, a.dtype, lambda: ufunc(a.get(), b.get()))

        return compute

    late.binder(op, T={dtypes.float32})(bind)


@sharing.kernel("Neg", T={dtypes.float32})
def neg(ctx, x):
    raise errors.UnimplementedError(None, None, "not in the mood")


@hookimpl
def opdock_backends():
    for name, device, table in (
        ("left", "SharingDevice", "sharing"),
        ("right", "SharingDevice", "sharing"),
        ("late", "LateDevice", "late"),
    ):
        yield BackendSpec(
            name=name, device_type=name.upper(), own_type=name.upper(), api=(1, 0), priority=-30,
            probe=f"{__name__}:probe", device=f"{__name__}:{device}",
            kernels=(f"{__name__}:{table}",), automatic=False,
        )  # fmt: skip


def probe():
    return Probe(devices=[DeviceAttributes(index=0)])
