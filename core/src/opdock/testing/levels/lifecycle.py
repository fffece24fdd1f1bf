"""Level L0: the device itself - memory, copies, waiting, errors, closing and opening again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from opdock import dtypes, errors
from opdock.dtypes import DType
from opdock.plugins.loading import resolve
from opdock.testing.harness.case import Result, Skip, Unit, check, single
from opdock.testing.harness.sample import Sampler
from opdock.testing.levels.device import DeviceUnderTest
from opdock.testing.levels.namespaces import check_namespace
from opdock.testing.levels.queued import QUEUE_TESTS

__all__ = ["lifecycle_units"]

Array = npt.NDArray[Any]
Test = Callable[[DeviceUnderTest], None]

_SINCE = (1, 0)
_HUGE = (1 << 20, 1 << 20, 1 << 18)  # 2**58 elements: more than any address reaches


def lifecycle_units(dut: DeviceUnderTest, only: frozenset[str] = frozenset()) -> Iterator[Unit]:
    """One unit per element type for the round trip, then one per property of the device."""
    held = dtypes.NUMBERS | {dtypes.bool} if dut.dtypes is None else dut.dtypes
    for dtype in sorted(dtypes.NUMBERS | {dtypes.bool}, key=lambda d: d.name):
        name = "round-trip" if dtype in held else "unsupported-type"
        test = _round_trip if dtype in held else _unsupported
        if not only or name in only:
            yield Unit(
                "L0", name, dtype.name,
                lambda test=test, dtype=dtype, name=name: _run(  # type: ignore[misc]
                    test, dut, dtype, name
                ),
            )  # fmt: skip
    for name, check_device in _TESTS.items():
        if name == "namespace" and dut.device.namespace is None:
            continue
        if not only or name in only:
            yield single("L0", name, lambda fn=check_device: fn(dut), _SINCE)  # type: ignore[misc]


def _run(
    test: Callable[[DeviceUnderTest, DType], None], dut: DeviceUnderTest, dtype: DType, name: str
) -> list[Result]:
    test(dut, dtype)
    return [Result("L0", name, dtype.name)]


# ---------------------------------------------------------------- element types
def _round_trip(dut: DeviceUnderTest, dtype: DType) -> None:
    """Scalars, vectors, empty and strided arrays, and special values, bit by bit."""
    for what, array in _arrays(dtype):
        buffer = dut.device.upload(array)
        check(tuple(buffer.shape) == array.shape, f"{what}: the buffer's shape is {buffer.shape}")
        check(_holds(dut, buffer, dtype), f"{what}: {_expected(buffer, dtype)}")
        _same(dut.device.download(buffer), array, what)


def _holds(dut: DeviceUnderTest, buffer: Any, dtype: DType) -> bool:
    """Whether the buffer's element type is NumPy's, or the one of the device's namespace."""
    own = getattr(dut.device.namespace, dtype.name, None)
    return bool(buffer.dtype == dtype.np if own is None else buffer.dtype in (own, dtype.np))


def _expected(buffer: Any, dtype: DType) -> str:
    return (
        f"the buffer's dtype is {buffer.dtype!r}; it must be NumPy's {dtype.name}, or that of the "
        "device's `namespace`: else wrap the library's array in a buffer of your own"
    )


def _arrays(dtype: DType) -> Iterator[tuple[str, Array]]:
    rng = Sampler(dtype.np, f"round-trip/{dtype.name}")
    yield "scalar", rng.normal(())
    yield "vector", rng.normal((7,))
    yield "rank 5", rng.normal((2, 3, 1, 2, 2))
    yield "empty", rng.normal((0, 3))
    yield "odd size", rng.normal((1021,))
    yield "strided", rng.normal((6, 8))[::2, 1::3]
    yield "transposed", rng.normal((3, 4)).T
    yield "reversed", rng.normal((5,))[::-1]
    if dtype.is_floating:
        values = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, 65504.0]
        with np.errstate(all="ignore"):
            yield "special values", np.array(values).astype(dtype.np)
    if dtype.is_integer:
        yield "extremes", np.array([int(dtype.min), int(dtype.max), 0], dtype.np)


def _same(got: Any, wanted: Array, what: str) -> None:
    check(type(got) is np.ndarray, f"{what}: download gave {type(got).__name__}, no ndarray")
    check(got.dtype == wanted.dtype, f"{what}: download gave {got.dtype}, not {wanted.dtype}")
    check(got.shape == wanted.shape, f"{what}: download gave {got.shape}, not {wanted.shape}")
    check(got.tobytes() == np.ascontiguousarray(wanted).tobytes(), f"{what}: the values differ")


def _unsupported(dut: DeviceUnderTest, dtype: DType) -> None:
    """A type that the device says it cannot hold is refused with the right class."""
    _raises(
        lambda: dut.device.upload(np.zeros((2,), dtype.np)),
        errors.UnimplementedError,
        f"upload of {dtype.name}, which is not in device.dtypes,",
    )


def _raises(call: Callable[[], object], wanted: Any, what: str) -> None:
    try:
        call()
    except Exception as error:
        check(
            isinstance(error, wanted), f"{what} raised {type(error).__name__}: {str(error)[:200]}"
        )
        return
    check(False, f"{what} raised nothing")


# ---------------------------------------------------------------- properties
def _mutate_after_upload(dut: DeviceUnderTest) -> None:
    """The caller may change an array, or what it is a view of, as soon as `upload` returns."""
    dtype = _type(dut).np
    for what, view in _VIEWS.items():
        base = np.arange(1, 1 + 48, dtype=dtype).reshape(6, 8)
        _mutate(dut, what, base, view(base))
    large, scalar = np.arange(1 << 16, dtype=dtype), np.array(7, dtype)
    _mutate(dut, "a large array", large, large)
    _mutate(dut, "an array without dimensions", scalar, scalar)


def _mutate(dut: DeviceUnderTest, what: str, base: Array, array: Array) -> None:
    """Uploads an array, changes the one that it is a view of, and downloads."""
    wanted = array.copy()
    buffer = dut.device.upload(array)
    base[...] = 0
    check(tuple(buffer.shape) == wanted.shape, f"{what}: the buffer's shape is {buffer.shape}")
    _same(dut.device.download(buffer), wanted, f"{what} that changed after upload")


def _read_only(array: Array) -> Array:
    view = array[:]
    view.flags.writeable = False
    return view


_VIEWS: Final[dict[str, Callable[[Array], Array]]] = {
    "an array": lambda a: a,
    "a view": lambda a: a[:],
    "a row": lambda a: a[2],
    "a view with gaps": lambda a: a[::2, 1::3],
    "a reversed view": lambda a: a[::-1],
    "a transposed view": lambda a: a.T,
    "a repeated row": lambda a: np.broadcast_to(a[1], (4, 8)),
    "a view of one element": lambda a: a[3, 4:5].reshape(()),
    "a view without elements": lambda a: a[:0],
    "a read-only view": _read_only,
}
"""What an uploaded array can be of an array of two dimensions."""


def _fresh_download(dut: DeviceUnderTest) -> None:
    """A downloaded array is the caller's own."""
    wanted = np.arange(12, dtype=_type(dut).np).reshape(3, 4)
    buffer = dut.device.upload(wanted)
    first = dut.device.download(buffer)
    check(first.flags.writeable, "a downloaded array cannot be written")
    first[...] = 0
    _same(dut.device.download(buffer), wanted, "second download")


def _empty(dut: DeviceUnderTest) -> None:
    """`empty` has the shape and type asked for, zero-sized ones included."""
    dtype = _type(dut)
    for shape in ((), (3,), (0,), (2, 0, 3), (4, 5)):
        buffer = dut.device.empty(shape, dtype)
        check(tuple(buffer.shape) == shape, f"empty({shape}) has shape {buffer.shape}")
        check(_holds(dut, buffer, dtype), f"empty({shape}): {_expected(buffer, dtype)}")
        check(dut.device.download(buffer).shape == shape, f"empty({shape}) does not download")


def _many_buffers(dut: DeviceUnderTest) -> None:
    """Buffers do not share memory."""
    dtype = _type(dut).np
    arrays = [np.full((50,), i, dtype) for i in range(40)]
    buffers = [dut.device.upload(a) for a in arrays]
    for i in reversed(range(40)):
        _same(dut.device.download(buffers[i]), arrays[i], f"buffer {i} of 40")


def _synchronize(dut: DeviceUnderTest) -> None:
    """`synchronize` works whether or not there is work queued."""
    device = dut.device
    device.synchronize()
    buffer = device.upload(np.ones((1000,), _type(dut).np))
    device.synchronize()
    check(device.download(buffer).sum() == 1000, "the values changed")


def _memory(dut: DeviceUnderTest) -> None:
    """What is known of memory is not negative, and what is in use fits the limit."""
    stats = dut.device.memory()
    for name in ("in_use", "peak", "limit"):
        value = getattr(stats, name)
        check(value is None or value >= 0, f"memory().{name} is {value}")
    if stats.in_use is not None and stats.limit:
        check(stats.in_use <= stats.limit, f"{stats.in_use} bytes in use of {stats.limit}")


def _out_of_memory(dut: DeviceUnderTest) -> None:
    """More memory than there is raises ResourceExhaustedError, and the device lives on."""
    dtype = _type(dut)
    if dut.device.memory().limit is None:
        raise Skip("unsupported", "the device reports no memory limit")
    _raises(
        lambda: dut.device.empty(_HUGE, dtype), errors.ResourceExhaustedError, f"empty({_HUGE})"
    )
    _round_trip(dut, dtype)


def _close_and_reopen(dut: DeviceUnderTest) -> None:
    """A closed device can be opened again."""
    dtype = _type(dut)
    wanted = np.arange(6, dtype=dtype.np)
    for attempt in range(2):
        device = _another(dut)
        _same(device.download(device.upload(wanted)), wanted, f"instance {attempt + 1}")
        device.close()
    _round_trip(dut, dtype)


def _two_devices(dut: DeviceUnderTest) -> None:
    """Two open devices do not disturb each other."""
    first, second = dut.device, _another(dut)
    a = np.arange(5, dtype=_type(dut).np)
    b = a + a
    mine, theirs = first.upload(a), second.upload(b)
    _same(first.download(mine), a, "the first device")
    _same(second.download(theirs), b, "the second device")
    second.close()
    _same(first.download(mine), a, "the first device after the second was closed")


def _another(dut: DeviceUnderTest) -> Any:
    probed = dut.opened.probed
    return resolve(probed.spec.device)(probed.attributes)


def _type(dut: DeviceUnderTest) -> DType:
    """A type that the device can hold, float32 if possible."""
    held = dut.dtypes
    if held is None or dtypes.float32 in held:
        return dtypes.float32
    return min(held & dtypes.REALS, key=lambda d: d.name)


_TESTS: dict[str, Test] = {
    "namespace": check_namespace,
    "mutate-after-upload": _mutate_after_upload,
    "fresh-download": _fresh_download,
    "empty": _empty,
    "many-buffers": _many_buffers,
    "synchronize": _synchronize,
    "memory": _memory,
    "out-of-memory": _out_of_memory,
    "close-and-reopen": _close_and_reopen,
    "two-devices": _two_devices,
    **QUEUE_TESTS,
}
