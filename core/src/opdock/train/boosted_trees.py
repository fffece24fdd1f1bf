"""What `tf.estimator`'s boosted trees stand on: ensembles of trees, and where buckets begin.

Both are resources that a session makes with its variables and that Savers save.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final

from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.nodes.scopes import name_scope
from opdock.ops import boosted_trees as trees
from opdock.ops import boosted_trees_quantiles as quantiles
from opdock.ops.identity import identity
from opdock.train.made_resources import MadeResource, MadeResourceSaveable
from opdock.train.saveable import SaveSpec

__all__ = ["PruningMode", "QuantileAccumulator", "TreeEnsemble"]


class PruningMode:
    """When splits that lose are left out or taken back."""

    NO_PRUNING: Final = 0
    PRE_PRUNING: Final = 1
    POST_PRUNING: Final = 2

    _MODES: ClassVar = {"none": NO_PRUNING, "pre": PRE_PRUNING, "post": POST_PRUNING}

    @classmethod
    def from_str(cls, mode: str) -> int:
        """The mode of a name: "none", "pre" or "post"; ValueError for another."""
        if mode not in cls._MODES:
            raise ValueError(f"pruning_mode mode must be one of: {', '.join(sorted(cls._MODES))}")
        return cls._MODES[mode]


class QuantileAccumulator(MadeResource):
    """Streams of features' values, and the boundaries of buckets that are drawn from them.

    The boundaries are saved, the streams are not.

    Args:
        epsilon: how far ranks may be off, as a share of all weight.
        num_streams: how many features there are.
        num_quantiles: how many buckets a feature gets.
        name: a name for the resource.
        max_elements: how many entries a stream may get; 2 ** 40 when None.
    """

    def __init__(
        self, epsilon: float, num_streams: int, num_quantiles: int, name: str | None = None,
        max_elements: int | None = None,
    ) -> None:  # fmt: skip
        self._eps, self._num_streams, self._num_quantiles = epsilon, num_streams, num_quantiles
        most: dict[str, Any] = {} if max_elements is None else {"max_elements": max_elements}
        with name_scope(name, "QuantileAccumulator") as scope:
            self.resource_handle = quantiles.streams_handle_op(shared_name=scope, name=scope)
            self.initializer = quantiles.create_streams_op(
                self.resource_handle, epsilon, num_streams, **most
            )
            there = self.is_initialized()
        self._registered(there)
        name = self.resource_handle.name
        self.saveable = self._saved([
            SaveSpec(boundaries, "", f"{name}_bucket_boundaries_{i}")
            for i, boundaries in enumerate(self.get_bucket_boundaries())
        ])  # fmt: skip

    def is_initialized(self) -> Tensor:
        """Whether the session has made the streams."""
        return quantiles.is_initialized_op(self.resource_handle)  # type: ignore[no-any-return]

    def _gather_saveables_for_checkpoint(self) -> dict[str, Any]:
        return {"quantile_accumulator": self.saveable}

    def restored(self, values: list[Tensor]) -> Operation:
        """Makes the op that puts it back from what a checkpoint has of it."""
        return quantiles.deserialize_op(self.resource_handle, values)  # type: ignore[no-any-return]

    def add_summaries(self, float_columns: list[Any], example_weights: Any) -> Operation:
        """Adds values to the streams.

        Args:
            float_columns: a vector for each feature.
            example_weights: a vector of the examples' weights, or of one weight for all.
        """
        made = quantiles.make_summaries_op(float_columns, example_weights, self._eps)
        return quantiles.add_summaries_op(self.resource_handle, made)  # type: ignore[no-any-return]

    def flush(self) -> Operation:
        """Draws boundaries from the streams, which begin anew."""
        return quantiles.flush_op(  # type: ignore[no-any-return]
            self.resource_handle, self._num_quantiles
        )

    def get_bucket_boundaries(self) -> list[Tensor]:
        """The boundaries of each feature that were last drawn."""
        return list(quantiles.boundaries_op(self.resource_handle, num_features=self._num_streams))


class TreeEnsemble(MadeResource):
    """Trees that boost each other.

    Args:
        name: a name for the resource.
        stamp_token: a number that each change raises.
        is_local: whether each task has its own; such ones are not saved.
        serialized_proto: the trees to begin with, a serialized `TreeEnsemble` message.
    """

    def __init__(
        self, name: str | None, stamp_token: int = 0, is_local: bool = False,
        serialized_proto: Any = "",
    ) -> None:  # fmt: skip
        self._saveable: MadeResourceSaveable | None = None
        with name_scope(name, "TreeEnsemble") as scope:
            self.resource_handle = trees.ensemble_handle_op(shared_name=scope, name=scope)
            self.initializer = trees.create_ensemble_op(
                self.resource_handle, stamp_token, serialized_proto
            )
            there = self.is_initialized()
            if not is_local:
                stamp, text = self.serialize()
                saved = self.resource_handle.name
                self._saveable = self._saved(
                    [
                        SaveSpec(stamp, "", f"{saved}_stamp"),
                        SaveSpec(text, "", f"{saved}_serialized"),
                    ]
                )
            self._registered(there, shared=not is_local)

    def is_initialized(self) -> Tensor:
        """Whether the session has made the ensemble."""
        return trees.is_initialized_op(self.resource_handle)  # type: ignore[no-any-return]

    def _gather_saveables_for_checkpoint(self) -> dict[str, Any]:
        return {} if self._saveable is None else {"tree_ensemble": self._saveable}

    def restored(self, values: list[Tensor]) -> Operation:
        """Makes the op that puts it back from what a checkpoint has of it."""
        return self.deserialize(*values)

    def get_stamp_token(self) -> Tensor:
        """The number that each change raises, an int64 scalar."""
        stamp: Tensor = trees.get_states_op(self.resource_handle)[0]
        return stamp

    def get_states(self) -> tuple[Tensor, ...]:
        """How far it has grown.

        Returns:
            The stamp, the numbers of trees, of finished trees and of layers that were tried, and
            the range of the last layer's nodes.
        """
        names = (
            "stamp_token", "num_trees", "num_finalized_trees", "num_attempted_layers",
            "last_layer_nodes_range",
        )  # fmt: skip
        found = trees.get_states_op(self.resource_handle)
        return tuple(identity(each, name=n) for each, n in zip(found, names, strict=True))

    def serialize(self) -> tuple[Tensor, Tensor]:
        """The stamp, and the trees as a serialized message."""
        stamp, text = trees.serialize_ensemble_op(self.resource_handle)
        return stamp, text

    def deserialize(self, stamp_token: Any, serialized_proto: Any) -> Operation:
        """Puts other trees in the place of these; the arguments are what `serialize` gives."""
        return trees.deserialize_ensemble_op(  # type: ignore[no-any-return]
            self.resource_handle, stamp_token, serialized_proto
        )
