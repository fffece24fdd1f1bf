"""Complex numbers: making them, and taking them apart."""

from __future__ import annotations

from typing import Any

from opdock import dtypes
from opdock.docstrings import ELEMENTWISE, explained
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.dispatch import extensible
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.nodes.scopes import name_scope
from opdock.ops.elementary import neg_op
from opdock.ops.registry import OpSpec, define_op, get
from opdock.ops.support.common_shapes import broadcast2, unchanged
from opdock.ops.unbroadcast import unbroadcast_pair

__all__ = ["angle", "complex", "conj", "imag", "real"]

_COMPLEX = "T: {complex64, complex128} = DT_COMPLEX64"
_PART = _COMPLEX + ", Tout: {float, double} = DT_FLOAT"


def _part(op: str, signature: str, expr: str) -> OpSpec:
    spec = define_op(op, signature, _PART, expr=expr)
    spec.shape(unchanged)
    return spec


complex_op = define_op(
    "Complex", "real: T, imag: T -> out: Tout",
    "T: {float, double} = DT_FLOAT, Tout: {complex64, complex128} = DT_COMPLEX64",
    expr="complex(real, imag)",
)  # fmt: skip
complex_op.shape(broadcast2)
conj_op = define_op(
    "Conj", "input: T -> output: T", "T: {complex64, complex128, variant} = DT_COMPLEX64",
    expr="conj(input)",
)  # fmt: skip
conj_op.shape(unchanged)
real_op = _part("Real", "input: T -> output: Tout", "real(input)")
imag_op = _part("Imag", "input: T -> output: Tout", "imag(input)")
angle_op = _part("Angle", "input: T -> output: Tout", "angle(input)")
complex_abs_op = _part("ComplexAbs", "x: T -> y: Tout", "abs(x)")


@complex_op.gradient
def _(op: Operation, grad: Any) -> list[Any]:
    real_part, imag_part = op.inputs
    return unbroadcast_pair(real(grad), imag(grad), real_part, imag_part)


@conj_op.gradient
def _(op: Operation, grad: Any) -> Any:
    return conj_op(grad)


def _as_real_part(grad: Any) -> Any:
    return complex(grad, get("ZerosLike")(grad))


@real_op.gradient
def _(op: Operation, grad: Any) -> Any:
    return _as_real_part(grad)


@imag_op.gradient
def _(op: Operation, grad: Any) -> Any:
    # The conjugate of the derivative -i, by TF's convention for complex gradients.
    return complex(get("ZerosLike")(grad), grad)


@angle_op.gradient
def _(op: Operation, grad: Any) -> Any:
    # Real numbers all the way: a cluster computes both parts in one pass. Of the two quotients by
    # the size none overflows, as one by its square would.
    z = op.inputs[0]
    size = complex_abs_op(z, Tout=grad.dtype)
    scaled = grad / size
    return complex(neg_op(scaled * (imag(z) / size)), scaled * (real(z) / size))


@complex_abs_op.gradient
def _(op: Operation, grad: Any) -> Any:
    # A quotient and no Sign, whose own gradient is zero: this one is differentiated again.
    scaled = _as_real_part(grad) * op.inputs[0]
    return get("DivNoNan")(scaled, _as_real_part(op.outputs[0]))


@extensible
def complex(real: Any, imag: Any, name: str | None = None) -> Tensor:
    """A complex tensor from its two parts, with broadcasting.

    Args:
        real: a float32 or float64 tensor.
        imag: a tensor of the same type.
        name: a name for the operation.

    Returns:
        A complex64 or complex128 tensor.

    Raises:
        TypeError: the parts are not both float32 or both float64.
    """
    real = convert_to_tensor(real, name="real")
    imag = convert_to_tensor(imag, name="imag")
    with name_scope(name, "Complex", [real, imag]) as scope:
        kinds = (real.dtype.base_dtype, imag.dtype.base_dtype)
        if kinds == (dtypes.float64, dtypes.float64):
            out = dtypes.complex128
        elif kinds == (dtypes.float32, dtypes.float32):
            out = dtypes.complex64
        else:
            raise TypeError(
                f"real and imag have incorrect types: {real.dtype.name} {imag.dtype.name}"
            )
        return complex_op(real, imag, Tout=out, name=scope)  # type: ignore[no-any-return]


@extensible
@explained(ELEMENTWISE)
def real(input: Any, name: str | None = None) -> Tensor:
    """The real part, elementwise; a real tensor itself."""
    with name_scope(name, "Real", [input]) as scope:
        x = convert_to_tensor(input, name="input")
        if not x.dtype.is_complex:
            return x
        return real_op(x, Tout=x.dtype.real_dtype, name=scope)  # type: ignore[no-any-return]


@extensible
@explained(ELEMENTWISE)
def imag(input: Any, name: str | None = None) -> Tensor:
    """The imaginary part, elementwise; zeros for a real tensor."""
    with name_scope(name, "Imag", [input]) as scope:
        x = convert_to_tensor(input, name="input")
        if not x.dtype.is_complex:
            return get("ZerosLike")(x, name=scope)  # type: ignore[no-any-return]
        return imag_op(x, Tout=x.dtype.real_dtype, name=scope)  # type: ignore[no-any-return]


@extensible
@explained(ELEMENTWISE)
def angle(input: Any, name: str | None = None) -> Tensor:
    """The argument of complex numbers in radians, elementwise; zeros for a real tensor."""
    with name_scope(name, "Angle", [input]) as scope:
        x = convert_to_tensor(input, name="input")
        if not x.dtype.is_complex:
            return get("ZerosLike")(x, name=scope)  # type: ignore[no-any-return]
        return angle_op(x, Tout=x.dtype.real_dtype, name=scope)  # type: ignore[no-any-return]


@extensible
def conj(x: Any, name: str | None = None) -> Tensor:
    """The complex conjugate, elementwise; a real tensor itself.

    Args:
        x: a tensor of numbers.
        name: a name for the operation.

    Raises:
        TypeError: `x` does not hold numbers.
    """
    if isinstance(x, Tensor) and (x.dtype.is_floating or x.dtype.is_integer):
        return x
    with name_scope(name, "Conj", [x]) as scope:
        x = convert_to_tensor(x, name="x")
        if x.dtype.is_complex or x.dtype.base_dtype is dtypes.variant:
            return conj_op(x, name=scope)  # type: ignore[no-any-return]
        if x.dtype.is_floating or x.dtype.is_integer:
            return x  # type: ignore[no-any-return]
        raise TypeError(f"Expected numeric or variant tensor, got dtype {x.dtype!r}")
