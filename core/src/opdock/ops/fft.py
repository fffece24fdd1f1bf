"""Fourier transforms over the last one, two or three dimensions."""

from __future__ import annotations

from typing import Any

import numpy as np

from opdock import dtypes, shapes
from opdock.docstrings import explained
from opdock.graph.nodes.constant import constant
from opdock.graph.nodes.constant_value import known_shape
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.dispatch import extensible
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.nodes.scopes import name_scope
from opdock.ops.arithmetic import maximum, minimum
from opdock.ops.array import shape
from opdock.ops.cast import cast
from opdock.ops.compare import equal, logical_or
from opdock.ops.complex import real
from opdock.ops.fill import ones_like
from opdock.ops.fill import range as range_
from opdock.ops.joining import concat, stack
from opdock.ops.padding import pad
from opdock.ops.reduce import reduce_prod
from opdock.ops.registry import OpSpec, ShapeSig, define_op
from opdock.ops.select import where
from opdock.ops.slicing import slice as slice_
from opdock.ops.support import array_util
from opdock.shapes import Shape

__all__ = ["fft", "fft2d", "fft3d", "ifft", "ifft2d", "ifft3d"]

_RANKS = {"": 1, "2D": 2, "3D": 3}


def _define_complex(name: str) -> OpSpec:
    return define_op(
        name, "input: Tcomplex -> output: Tcomplex",
        "Tcomplex: {complex64, complex128} = DT_COMPLEX64",
    )  # fmt: skip


fft_op, fft2d_op, fft3d_op = (_define_complex(f"FFT{s}") for s in _RANKS)
ifft_op, ifft2d_op, ifft3d_op = (_define_complex(f"IFFT{s}") for s in _RANKS)
rfft_op, rfft2d_op, rfft3d_op = (
    define_op(f"RFFT{s}", "input: float, fft_length: int32 -> output: complex64") for s in _RANKS
)
irfft_op, irfft2d_op, irfft3d_op = (
    define_op(f"IRFFT{s}", "input: complex64, fft_length: int32 -> output: float") for s in _RANKS
)

_FORWARD = {1: fft_op, 2: fft2d_op, 3: fft3d_op}
_INVERSE = {1: ifft_op, 2: ifft2d_op, 3: ifft3d_op}
_REAL = {1: rfft_op, 2: rfft2d_op, 3: rfft3d_op}


def fft_rank(op_type: str) -> int:
    """Over how many dimensions an op of this type transforms."""
    return int(op_type[-2]) if op_type.endswith("D") else 1


# ---------------------------------------------------------------- shapes
def _complex_shape(sig: ShapeSig) -> Shape:
    return shapes.with_rank_at_least(sig.shapes[0], fft_rank(sig.op))


def _real_shape(sig: ShapeSig) -> Shape:
    n = fft_rank(sig.op)
    source = shapes.with_rank_at_least(sig.shapes[0], n)
    array_util.with_dim(array_util.vector_length(sig.shapes[1]), n)
    if source is None:
        return None
    known = array_util.const_ints(sig, 1)
    lengths: list[int | None] = [None] * n if known is None else [*known]
    if lengths[-1] is not None and not sig.op.startswith("I"):
        lengths[-1] = lengths[-1] // 2 + 1 if lengths[-1] else 0
    return source[: len(source) - n] + tuple(lengths)


for _op in (*_FORWARD.values(), *_INVERSE.values()):
    _op.shape(_complex_shape)
for _op in (*_REAL.values(), irfft_op, irfft2d_op, irfft3d_op):
    _op.shape(_real_shape)


# ---------------------------------------------------------------- gradients
def _count(x: Any, n: int) -> Any:
    """The number of elements that one transform of rank `n` of `x` covers."""
    static = x.raw_shape
    inner = None if static is None else static[len(static) - n :]
    known = shapes.num_elements(inner)
    return known if known is not None else reduce_prod(shape(x)[-n:])


def _complex_grad(op: Operation, grad: Any) -> Tensor:
    n = fft_rank(op.type)
    size = cast(_count(grad, n), grad.dtype)
    if op.type.startswith("I"):
        return _FORWARD[n](grad) / size  # type: ignore[no-any-return]
    return _INVERSE[n](grad) * size  # type: ignore[no-any-return]


def _real_grad(op: Operation, grad: Any) -> list[Any]:
    n, length = fft_rank(op.type), op.inputs[1]
    # The op is: pad, transform, drop half of the result; so the gradient undoes the three.
    full = _fit(grad, concat([shape(grad)[:-n], length], 0), n)
    spread = real(_INVERSE[n](full) * cast(_count(full, n), full.dtype))
    return [_fit(spread, shape(op.inputs[0]), n), None]


def _real_inverse_grad(op: Operation, grad: Any) -> list[Any]:
    n, length = fft_rank(op.type), op.inputs[1]
    spectrum = _REAL[n](grad, length)
    # Coefficients with a mirror image count twice; the first and (for even lengths) last have none.
    k = range_(shape(spectrum)[-1])
    single = logical_or(equal(k, 0), equal(2 * k, length[-1]))
    weight = where(single, ones_like(k), 2 * ones_like(k))
    scale = cast(weight, dtypes.float32) / cast(_count(grad, n), dtypes.float32)
    return [_fit(spectrum * cast(scale, spectrum.dtype), shape(op.inputs[0]), n), None]


def _fit(x: Tensor, wanted: Any, n: int) -> Tensor:
    """The last `n` dimensions cropped or padded with zeros to those of the shape `wanted`."""
    wanted = convert_to_tensor(wanted, dtypes.int32)
    target, static = known_shape(wanted), x.raw_shape
    if target is not None and static is not None and None not in target[-n:]:
        if static[-n:] == target[-n:]:
            return x

    dims = shape(x)
    common = concat([dims[:-n], minimum(dims[-n:], wanted[-n:])], 0)
    missing = maximum(wanted - dims, 0)
    none = 0 * dims
    missing = concat([none[:-n], missing[-n:]], 0)
    return pad(slice_(x, none, common), stack([none, missing], axis=1))


for _op in (*_FORWARD.values(), *_INVERSE.values()):
    _op.gradient(_complex_grad)
for _op in _REAL.values():
    _op.gradient(_real_grad)
for _op in (irfft_op, irfft2d_op, irfft3d_op):
    _op.gradient(_real_inverse_grad)


# ---------------------------------------------------------------- public functions
_WORDS = {
    "input": "a complex64 or complex128 tensor.",
    "name": "a name for the operation.",
    "returns": "A tensor of the type and shape of `input`.",
    "input_tensor": "a float32 tensor.",
}
"""What the functions here take."""


@extensible
@explained(_WORDS)
def fft(input: Any, name: str | None = None) -> Tensor:
    """The Fourier transform over the last dimension."""
    return fft_op(input, name=name)  # type: ignore[no-any-return]


@extensible
@explained(_WORDS)
def ifft(input: Any, name: str | None = None) -> Tensor:
    """The inverse Fourier transform over the last dimension."""
    return ifft_op(input, name=name)  # type: ignore[no-any-return]


@extensible
@explained(_WORDS)
def fft2d(input: Any, name: str | None = None) -> Tensor:
    """The Fourier transform over the last two dimensions."""
    return fft2d_op(input, name=name)  # type: ignore[no-any-return]


@extensible
@explained(_WORDS)
def ifft2d(input: Any, name: str | None = None) -> Tensor:
    """The inverse Fourier transform over the last two dimensions."""
    return ifft2d_op(input, name=name)  # type: ignore[no-any-return]


@extensible
@explained(_WORDS)
def fft3d(input: Any, name: str | None = None) -> Tensor:
    """The Fourier transform over the last three dimensions."""
    return fft3d_op(input, name=name)  # type: ignore[no-any-return]


@extensible
@explained(_WORDS)
def ifft3d(input: Any, name: str | None = None) -> Tensor:
    """The inverse Fourier transform over the last three dimensions."""
    return ifft3d_op(input, name=name)  # type: ignore[no-any-return]


def _inner_lengths(x: Tensor, n: int, inverse: bool) -> Tensor:
    """The transform's length when the caller names none: what `x` has, or came from."""
    static = x.raw_shape
    inner = None if static is None else static[len(static) - n :]
    if inner is not None and None not in inner:
        lengths = [d or 0 for d in inner]
        if inverse:
            lengths[-1] = max(0, 2 * (lengths[-1] - 1))
        return constant(np.array(lengths, np.int32), dtypes.int32)
    dims = shape(x)[-n:]
    if inverse:
        dims = concat([dims[:-1], maximum(2 * (dims[-1:] - 1), 0)], 0)
    return dims


def _padded(x: Tensor, fft_length: Tensor, n: int, inverse: bool) -> Tensor:
    """The input, with zeros behind it up to what a transform of this length reads.

    Our kernels would read zeros there by themselves; TensorFlow's, which may run the graph later,
    refuse an input that is too short.
    """
    static, lengths = x.raw_shape, known_shape(fft_length)
    if (static is not None and 0 in static) or fft_length.raw_shape not in (None, (None,), (n,)):
        return x  # empty, or an error that the transform tells
    if static is not None and lengths is not None:
        wanted = [d or 0 for d in lengths]
        wanted[-1] = wanted[-1] // 2 + 1 if inverse else wanted[-1]
        given = [d or 0 for d in static[-n:]]
        if None not in (*lengths, *static[-n:]):
            behind = [max(0, w - g) for w, g in zip(wanted, given, strict=True)]
            before = [0] * (len(static) - n)
            return pad(x, [[0, m] for m in before + behind]) if any(behind) else x
    if inverse:
        fft_length = concat([fft_length[:-1], fft_length[-1:] // 2 + 1], 0)
    dims = shape(x)
    added = concat([0 * dims[:-n], maximum(0, fft_length - dims[-n:])], 0)
    out = pad(x, stack([0 * added, added], axis=1))
    out.set_shape(None if static is None else static[:-n] + (None,) * n)
    return out


def _real_transform(
    op: OpSpec, dtype: Any, input_tensor: Any, fft_length: Any, name: str | None
) -> Tensor:
    n = fft_rank(op.name)
    default = op.name.lower()
    with name_scope(name, default, [input_tensor, fft_length]) as scope:
        x = convert_to_tensor(input_tensor, dtype, "input_tensor")
        x.shape.with_rank_at_least(n)
        if fft_length is None:
            fft_length = _inner_lengths(x, n, default.startswith("i"))
        else:
            fft_length = convert_to_tensor(fft_length, dtypes.int32, "fft_length")
            fft_length.shape.assert_has_rank(1)
            x = _padded(x, fft_length, n, default.startswith("i"))
        return op(x, fft_length, name=scope)  # type: ignore[no-any-return]


@explained(
    _WORDS,
    fft_length="the length of the transform, an int32 tensor of shape [1]; the input is cropped "
    "or padded with zeros to it. By default the length of the input.",
    returns="A complex64 tensor with fft_length / 2 + 1 coefficients; the others mirror them.",
)
def rfft(input_tensor: Any, fft_length: Any = None, name: str | None = None) -> Tensor:
    """The Fourier transform of real numbers over the last dimension."""
    return _real_transform(rfft_op, dtypes.float32, input_tensor, fft_length, name)


@explained(
    _WORDS,
    input_tensor="a complex64 tensor.",
    fft_length="the length of the result, an int32 tensor of shape [1]; needed when it is odd.",
    returns="A float32 tensor.",
)
def irfft(input_tensor: Any, fft_length: Any = None, name: str | None = None) -> Tensor:
    """The inverse of `rfft`."""
    return _real_transform(irfft_op, dtypes.complex64, input_tensor, fft_length, name)


@explained(
    _WORDS,
    fft_length="the lengths of the transform, an int32 tensor of shape [2].",
    returns="A complex64 tensor whose last dimension has fft_length[-1] / 2 + 1 coefficients.",
)
def rfft2d(input_tensor: Any, fft_length: Any = None, name: str | None = None) -> Tensor:
    """The Fourier transform of real numbers over the last two dimensions."""
    return _real_transform(rfft2d_op, dtypes.float32, input_tensor, fft_length, name)


@explained(
    _WORDS,
    input_tensor="a complex64 tensor.",
    fft_length="the lengths of the result, an int32 tensor of shape [2].",
    returns="A float32 tensor.",
)
def irfft2d(input_tensor: Any, fft_length: Any = None, name: str | None = None) -> Tensor:
    """The inverse of `rfft2d`."""
    return _real_transform(irfft2d_op, dtypes.complex64, input_tensor, fft_length, name)


@explained(
    _WORDS,
    fft_length="the lengths of the transform, an int32 tensor of shape [3].",
    returns="A complex64 tensor whose last dimension has fft_length[-1] / 2 + 1 coefficients.",
)
def rfft3d(input_tensor: Any, fft_length: Any = None, name: str | None = None) -> Tensor:
    """The Fourier transform of real numbers over the last three dimensions."""
    return _real_transform(rfft3d_op, dtypes.float32, input_tensor, fft_length, name)


@explained(
    _WORDS,
    input_tensor="a complex64 tensor.",
    fft_length="the lengths of the result, an int32 tensor of shape [3].",
    returns="A float32 tensor.",
)
def irfft3d(input_tensor: Any, fft_length: Any = None, name: str | None = None) -> Tensor:
    """The inverse of `rfft3d`."""
    return _real_transform(irfft3d_op, dtypes.complex64, input_tensor, fft_length, name)
