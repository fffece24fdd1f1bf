"""What the ops compute that hand their input on."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from opdock.testing.reference._registry import reference

Array = npt.NDArray[Any]
Attrs = dict[str, Any]


@reference("Identity", "Snapshot", "GuaranteeConst", "StopGradient", "PreventGradient",
           "PlaceholderWithDefault", "CheckNumerics", "RefIdentity")  # fmt: skip
def unchanged(attrs: Attrs, x: Array) -> Array:
    """The input."""
    return x


@reference("IdentityN")
def identity_n(attrs: Attrs, values: list[Array]) -> tuple[Array, ...]:
    """The inputs."""
    return tuple(values)
