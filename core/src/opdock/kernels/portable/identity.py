"""Portable kernels of ops that hand their input on."""

from __future__ import annotations

from typing import Any

from opdock import dtypes
from opdock.kernels.array_api import fails, invalid
from opdock.kernels.portable import portable
from opdock.kernels.select.signature import NodeSig


@portable(
    "Identity", "Snapshot", "StopGradient", "PreventGradient", "PlaceholderWithDefault",
    "RefIdentity", may_alias={0: 0},
)  # fmt: skip
def identity(xp: Any, sig: NodeSig) -> Any:
    """The input itself."""
    return lambda value: value


@portable("GuaranteeConst", may_alias={0: 0})
def guarantee_const(xp: Any, sig: NodeSig) -> Any:
    """The input itself, unless it is a handle: what is behind one changes."""
    if sig.in_dtypes[0] is not dtypes.resource:
        return lambda value: value

    def refuse(handle: Any) -> Any:
        raise invalid("Input tensor cannot be a resource variable handle.")

    return refuse


def not_finite(message: str, infinite: bool, undefined: bool) -> Exception:
    """The error of a tensor that has infinities, values that are no number, or both."""
    found = [what for what, has in (("Inf", infinite), ("NaN", undefined)) if has]
    return invalid(f"{message} : Tensor had {' and '.join(found)} values")


@portable("CheckNumerics", T=dtypes.FLOATS, may_alias={0: 0}, keeps=())
def check_numerics(xp: Any, sig: NodeSig) -> Any:
    """The input, if all of it is finite."""
    message = sig.attrs["message"]

    def run(tensor: Any) -> Any:
        if not fails(xp, ~xp.all(xp.isfinite(tensor))):
            return tensor
        raise not_finite(message, *(bool(xp.any(is_(tensor))) for is_ in (xp.isinf, xp.isnan)))

    return run
