"""TF's classes of columns from before it had those of `base.py`.

Programs that are to run on either derive their columns from both. Here the newer do all that the
older did, so these add nothing; every column counts as one of them.
"""

from __future__ import annotations

import functools
from typing import Any

from opdock.feature_column import base
from opdock.graph.variables.partitioned import PartitionedVariable
from opdock.graph.variables.trackable import Trackable
from opdock.graph.variables.variable_scope import get_variable
from opdock.layers.base import Layer


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
    """A state manager whose variables a layer makes, by `tf.get_variable`.

    So they have the names and the partitioner of the variable scope that is open. A layer that
    checkpoints save has them by column and name: its own name for one is only the last part, which
    the variables of two columns share.

    Args:
        layer: has `add_weight`; None where no column needs variables.
        trainable: False makes no variable trainable.
    """

    def __init__(self, layer: Any, trainable: bool) -> None:
        make = None if layer is None else layer.add_weight
        if make is not None and not isinstance(layer, Layer):  # which asks get_variable anyway
            make = functools.partial(make, getter=get_variable)
        super().__init__(make, trainable)
        self._layer = layer

    def create_variable(
        self, feature_column: base.FeatureColumn, name: str, *args: Any, **kwargs: Any
    ) -> Any:
        """Makes the variable, keeps it, and has the layer track it."""
        variable = super().create_variable(feature_column, name, *args, **kwargs)
        if isinstance(self._layer, Trackable):
            for path, part in _parts(f"{feature_column.name}/{name}", variable):
                self._layer._track_trackable(part, path)
        return variable


def _parts(name: str, variable: Any) -> list[tuple[str, Any]]:
    """What of a variable is tracked, by name: each part of one that is partitioned."""
    if not isinstance(variable, PartitionedVariable):
        return [(name, variable)]
    return [(f"{name}/{v._get_save_slice_info().var_offset[0]}", v) for v in variable]
