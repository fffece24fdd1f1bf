"""Arrays of a program as a data set: variables of the host keep them."""

from __future__ import annotations

from typing import Any

import numpy as np

from opdock.graph.nodes.scopes import device as on_device
from opdock.graph.variables.flavour import variable_class
from opdock.ops.fill import zeros
from opdock.util import nest

__all__ = ["variables_of"]


def variables_of(arrays: Any, session: Any, device: str = "") -> Any:
    """Variables with the values of arrays, in their structure.

    Args:
        arrays: a structure of arrays.
        session: in which they get their values.
        device: where they are.

    Raises:
        AssertionError: there is no session.
    """
    if session is None:
        raise AssertionError("a session has to be given, in which the arrays are put")

    def variable(array: Any) -> Any:
        array = np.asarray(array)
        # By its class: it is no variable of a strategy.
        with on_device(device or None):
            made = variable_class(True)(zeros(array.shape, array.dtype), trainable=False)
        session.run(made.initializer)
        made.load(array, session)
        return made

    return nest.map_structure(variable, arrays)
