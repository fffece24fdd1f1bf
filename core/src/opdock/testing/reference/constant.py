"""The oracle for constants."""

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
