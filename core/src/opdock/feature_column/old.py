"""TF's classes of columns from before it had those of `base.py`.

Programs that are to run on either derive their columns from both. Here the newer do all that the
older did, so these add nothing; every column counts as one of them.
"""

from __future__ import annotations

import contextlib
from typing import Any

from opdock.feature_column import base
from opdock.graph.nodes.scopes import name_scope
from opdock.graph.variables.variable_scope import get_variable_scope


class OldDenseColumn(base.DenseColumn):
    """`_DenseColumn`."""

    @classmethod
    def __subclasshook__(cls, other: type) -> Any:
        return base.DenseColumn in other.__mro__ if cls is OldDenseColumn else NotImplemented


class OldCategoricalColumn(base.CategoricalColumn):
    """`_CategoricalColumn`."""

    @classmethod
    def __subclasshook__(cls, other: type) -> Any:
        if cls is not OldCategoricalColumn:
            return NotImplemented
        return base.CategoricalColumn in other.__mro__


class LayerState(base.KeptState):
    """A state manager whose variables a layer makes, named by the variable scope that is open.

    Args:
        layer: has `add_weight`; None where no column needs variables.
        trainable: False makes no variable trainable.
    """

    def __init__(self, layer: Any, trainable: bool) -> None:
        super().__init__(None if layer is None else layer.add_weight, trainable)
        self._layer = layer

    def create_variable(self, *args: Any, **kwargs: Any) -> Any:
        """Makes the variable and keeps it."""
        # Layers of Keras name a weight by the name scope, which repeats the layer's name here.
        scope = get_variable_scope().name
        with name_scope(f"{scope}/") if scope else contextlib.nullcontext():
            return super().create_variable(*args, **kwargs)
