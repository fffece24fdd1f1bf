"""A forest's resources: its trees, and what their leaves count while it is trained."""

from __future__ import annotations

from typing import Any

from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.nodes.scopes import name_scope
from opdock.ops import tensor_forest as forest_ops
from opdock.train.made_resources import MadeResource
from opdock.train.saveable import SaveSpec

__all__ = ["FertileStatsVariable", "TreeVariable", "fertile_stats_variable", "tree_variable"]


class TreeVariable(MadeResource):
    """A tree.

    Args:
        params: the forest's parameters, with `serialized_params_proto`.
        tree_config: a serialized `Model` message to begin with; empty for a single leaf.
        stats_handle: what its leaves count.
        name: a name for the resource.
        container: the container that has it.
    """

    def __init__(
        self, params: Any, tree_config: Any, stats_handle: Any, name: str,
        container: str | None = None,
    ) -> None:  # fmt: skip
        self._params = params.serialized_params_proto
        self.stats_handle = stats_handle
        self.resource_handle = forest_ops.tree_handle_op(
            container=container or "", shared_name=name, name=name
        )
        self.initializer = forest_ops.create_tree_op(
            self.resource_handle, tree_config, params=self._params
        )
        self._registered(self.is_initialized())
        text = forest_ops.serialize_tree_op(self.resource_handle)
        self._saveable = self._saved([SaveSpec(text, "", self.resource_handle.name)])

    def is_initialized(self) -> Tensor:
        """Whether the session has made it."""
        return forest_ops.tree_is_initialized_op(self.resource_handle)  # type: ignore[no-any-return]

    def _gather_saveables_for_checkpoint(self) -> dict[str, Any]:
        return {"tree_variable": self._saveable}

    def restored(self, values: list[Tensor]) -> Operation:
        """Makes the op that puts it back from what a checkpoint has of it."""
        return forest_ops.deserialize_tree_op(  # type: ignore[no-any-return]
            self.resource_handle, values[0], params=self._params
        )


class FertileStatsVariable(MadeResource):
    """What the leaves of a tree count.

    Args:
        params: the forest's parameters, with `serialized_params_proto`.
        stats_config: a serialized `FertileStats` message to begin with; empty for nothing counted.
        name: a name for the resource.
        container: the container that has it.
    """

    def __init__(
        self, params: Any, stats_config: Any, name: str, container: str | None = None
    ) -> None:
        self._params = params.serialized_params_proto
        self.resource_handle = forest_ops.stats_handle_op(
            container=container or "", shared_name=name, name=name
        )
        self.initializer = forest_ops.create_stats_op(
            self.resource_handle, stats_config, params=self._params
        )
        self._registered(self.is_initialized())
        text = forest_ops.serialize_stats_op(self.resource_handle, params=self._params)
        self._saveable = self._saved([SaveSpec(text, "", self.resource_handle.name)])

    def is_initialized(self) -> Tensor:
        """Whether the session has made it."""
        return forest_ops.stats_is_initialized_op(  # type: ignore[no-any-return]
            self.resource_handle
        )

    def _gather_saveables_for_checkpoint(self) -> dict[str, Any]:
        return {"fertile_stats_variable": self._saveable}

    def restored(self, values: list[Tensor]) -> Operation:
        """Makes the op that puts it back from what a checkpoint has of it."""
        return forest_ops.deserialize_stats_op(  # type: ignore[no-any-return]
            self.resource_handle, values[0], params=self._params
        )


def tree_variable(
    params: Any, tree_config: Any, stats_handle: Any, name: str, container: str | None = None
) -> Tensor:
    """Makes a tree, to be initialized with the shared resources and saved with the variables.

    Args:
        params: the forest's parameters, with `serialized_params_proto`.
        tree_config: a serialized `Model` message to begin with; empty for a single leaf.
        stats_handle: what its leaves count.
        name: a name for the resource.
        container: the container that has it.

    Returns:
        The handle.
    """
    with name_scope(name, "TreeVariable") as scope:
        return TreeVariable(params, tree_config, stats_handle, scope, container).resource_handle


def fertile_stats_variable(
    params: Any, stats_config: Any, name: str, container: str | None = None
) -> Tensor:
    """Makes what the leaves of a tree count, to be initialized and saved as the tree is.

    Args:
        params: the forest's parameters, with `serialized_params_proto`.
        stats_config: a serialized `FertileStats` message to begin with; empty for nothing counted.
        name: a name for the resource.
        container: the container that has it.

    Returns:
        The handle.
    """
    with name_scope(name, "FertileStatsVariable") as scope:
        return FertileStatsVariable(params, stats_config, scope, container).resource_handle
