"""Level L0: the device's array namespace, where it has one, does what portable kernels ask of it.

A library that is almost the array API standard fails in many kernels at once, each with words of
its own; here it is told once, function by function.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np

from opdock import dtypes
from opdock.kernels.array_api import dtype_of
from opdock.kernels.numpy_namespace import NumpyNamespace
from opdock.testing.harness.case import Skip, check
from opdock.testing.levels.device import DeviceUnderTest

__all__ = ["check_namespace"]

_FUNCTION: Final = re.compile(r"(\w+)\(")

Call = Callable[..., Any]
"""Takes a namespace and its arrays: floats `x`, places `i`, truths `b`, and a device or None."""

_CALLS: Final[dict[str, Call]] = {
    "abs(x)": lambda xp, x, i, b, d: xp.abs(x),
    "any(b, axis=1, keepdims=True)": lambda xp, x, i, b, d: xp.any(b, axis=1, keepdims=True),
    "arange(3, dtype=int32, device=d)": lambda xp, x, i, b, d: xp.arange(
        3, dtype=xp.int32, device=d
    ),
    "argmax(x, axis=1)": lambda xp, x, i, b, d: xp.argmax(x, axis=1),
    "asarray([2, 1], dtype=int32, device=d)": lambda xp, x, i, b, d: xp.asarray(
        [2, 1], dtype=xp.int32, device=d
    ),
    "asarray(x, copy=True)": lambda xp, x, i, b, d: xp.asarray(x, copy=True),
    "astype(x, int32)": lambda xp, x, i, b, d: xp.astype(x, xp.int32),
    "astype(x, bool, copy=False)": lambda xp, x, i, b, d: xp.astype(x, xp.bool, copy=False),
    "broadcast_to(x, (2, 2, 3))": lambda xp, x, i, b, d: xp.broadcast_to(x, (2, 2, 3)),
    "concat([x, x], axis=1)": lambda xp, x, i, b, d: xp.concat([x, x], axis=1),
    "expand_dims(x, axis=1)": lambda xp, x, i, b, d: xp.expand_dims(x, axis=1),
    "flip(x, axis=(0,))": lambda xp, x, i, b, d: xp.flip(x, axis=(0,)),
    "full((2, 0), 1.5, dtype=float32, device=d)": lambda xp, x, i, b, d: xp.full(
        (2, 0), 1.5, dtype=xp.float32, device=d
    ),
    "full_like(x, 2.0)": lambda xp, x, i, b, d: xp.full_like(x, 2.0),
    "matmul(x, matrix_transpose(x))": lambda xp, x, i, b, d: xp.matmul(x, xp.matrix_transpose(x)),
    "max(x, axis=(0, 1), keepdims=True)": lambda xp, x, i, b, d: xp.max(
        x, axis=(0, 1), keepdims=True
    ),
    "maximum(x, x)": lambda xp, x, i, b, d: xp.maximum(x, x),
    "min(x, axis=(1,))": lambda xp, x, i, b, d: xp.min(x, axis=(1,)),
    "permute_dims(x, (1, 0))": lambda xp, x, i, b, d: xp.permute_dims(x, (1, 0)),
    "reshape(x, (3, -1))": lambda xp, x, i, b, d: xp.reshape(x, (3, -1)),
    "stack([x, x], axis=1)": lambda xp, x, i, b, d: xp.stack([x, x], axis=1),
    "sum(x, axis=(0,), keepdims=True, dtype=float32)": lambda xp, x, i, b, d: xp.sum(
        x, axis=(0,), keepdims=True, dtype=xp.float32
    ),
    "take(x, i, axis=1)": lambda xp, x, i, b, d: xp.take(x, i, axis=1),
    "where(b, x, zeros_like(x))": lambda xp, x, i, b, d: xp.where(b, x, xp.zeros_like(x)),
    "1.0 - x, 2.0 * x": lambda xp, x, i, b, d: (1.0 - x) * (2.0 * x),
    "3 ^ i, 6 & i, 1 | i, i >> 1": lambda xp, x, i, b, d: ((3 ^ i) + (6 & i) + (1 | i)) + (i >> 1),
    "zeros((2,), dtype=float32, device=d)": lambda xp, x, i, b, d: xp.zeros(
        (2,), dtype=xp.float32, device=d
    ),
    "x < 0, x + 1.0, x[0, ...], x[:, None, :]": lambda xp, x, i, b, d: xp.where(
        x < 0, x + 1.0, x[0, ...]
    )[:, None, :],
    "all(b, axis=(0, 1))": lambda xp, x, i, b, d: xp.all(b, axis=(0, 1)),
    "argsort(x, axis=1, descending=True, stable=True)": lambda xp, x, i, b, d: xp.argsort(
        x, axis=1, descending=True, stable=True
    ),
    "clip(x, min=-1.0, max=1.0)": lambda xp, x, i, b, d: xp.clip(x, min=-1.0, max=1.0),
    "cumulative_sum(x, axis=1)": lambda xp, x, i, b, d: xp.cumulative_sum(x, axis=1),
    "eye(2, 3, dtype=float32, device=d)": lambda xp, x, i, b, d: xp.eye(
        2, 3, dtype=xp.float32, device=d
    ),
    "nonzero(b)": lambda xp, x, i, b, d: xp.nonzero(b)[1],
    "ones_like(x)": lambda xp, x, i, b, d: xp.ones_like(x),
    "prod(x, axis=(1,), dtype=float32)": lambda xp, x, i, b, d: xp.prod(
        x, axis=(1,), dtype=xp.float32
    ),
    "sort(x, axis=0)": lambda xp, x, i, b, d: xp.sort(x, axis=0),
    "tril(x, k=-1)": lambda xp, x, i, b, d: xp.tril(x, k=-1),
}
"""What many kernels call, and how. A namespace may lack functions; what it has, does this."""

_ARRAYS: Final = (
    np.array([[1.5, -2.25, 0.0], [-0.5, 3.0, 2.5]], np.float32),
    np.array([2, 0], np.int32),
    np.array([[True, False, True], [False, False, True]]),
)


def check_namespace(dut: DeviceUnderTest) -> None:
    """Portable kernels find in the device's namespace what they call, and it computes as NumPy."""
    xp = dut.device.namespace
    if dut.dtypes is not None and not {dtypes.float32, dtypes.int32, dtypes.bool} <= dut.dtypes:
        raise Skip("unsupported", "the device does not hold float32, int32 and bool")
    wrong = [*_types(dut, xp), *_calls(dut, xp)]
    name = getattr(xp, "__name__", type(xp).__name__)
    check(not wrong, f"namespace {name}: {'; '.join(wrong)}")


def _types(dut: DeviceUnderTest, xp: Any) -> Iterator[str]:
    """Element types by name: what the device holds, the namespace can make."""
    held = (dtypes.NUMBERS | {dtypes.bool}) & (dut.dtypes or dtypes.NUMBERS | {dtypes.bool})
    alike: dict[str, list[str]] = {}
    for dtype in sorted(held, key=lambda t: t.name):
        try:
            element = dtype_of(xp, dtype)
            made = xp.zeros((2,), dtype=element, device=dut.device.namespace_device)
            found = dut.device.download(made).dtype
        except Exception as error:
            alike.setdefault(f"raised {_said(error)}", []).append(dtype.name)
            continue
        if found != dtype.np:
            alike.setdefault(f"gave {found}", []).append(dtype.name)
    for what, names in alike.items():
        yield f"zeros((2,), dtype=t, device=d) {what} for t = {', '.join(names)}"
    lacking = sorted(d.name for d in held if not hasattr(xp, d.name))
    if alike and lacking:
        yield f"it has no types of the names {', '.join(lacking)}"


def _calls(dut: DeviceUnderTest, xp: Any) -> Iterator[str]:
    oracle = NumpyNamespace("oracle")
    held = [dut.device.upload(array) for array in _ARRAYS]
    device = getattr(held[0], "device", dut.device.namespace_device)
    for text, call in _CALLS.items():
        if not all(hasattr(xp, name) for name in _FUNCTION.findall(text)):
            continue  # a kernel that asks for it hears so, or the device refuses that kernel
        wanted = np.asarray(call(oracle, *_ARRAYS, None))
        try:
            result = call(xp, *held, device)
            found = dut.device.download(result)
        except Exception as error:
            yield f"{text} raised {_said(error)}"
            continue
        yield from _compared(text, found, wanted)
        if "copy=True" in text and result is held[0]:
            yield f"{text} gave x itself"
    for array, buffer in zip(_ARRAYS, held, strict=True):
        if not np.array_equal(dut.device.download(buffer), array):
            yield f"one of its functions wrote to its argument, {array.dtype.name}"


def _compared(text: str, found: Any, wanted: Any) -> Iterator[str]:
    places = wanted.dtype.kind in "iu"  # a library's own choice: int32 or int64
    if found.dtype.kind != wanted.dtype.kind or not (places or found.dtype == wanted.dtype):
        yield f"{text} gave {found.dtype}, not {wanted.dtype}"
    elif found.shape != wanted.shape:
        yield f"{text} gave the shape {found.shape}, not {wanted.shape}"
    elif not np.allclose(found, wanted):
        yield f"{text} gave {found.tolist()}, not {wanted.tolist()}"


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0][:120]}"
