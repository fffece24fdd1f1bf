"""Oracle of constants and assertions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.testing.reference._registry import reference


@reference("Const")
def const(attrs: Mapping[str, Any]) -> npt.NDArray[Any]:
    """The value that the node holds."""
    return np.asarray(attrs["value"])


@reference("Assert")
def assert_(attrs: Mapping[str, Any], condition: npt.NDArray[Any], data: Any) -> tuple[()]:
    """Nothing: a sample's condition holds."""
    return ()
