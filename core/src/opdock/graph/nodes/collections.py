"""Graph collections and their standard names."""

from __future__ import annotations

from typing import Any, Final


class GraphKeys:
    """Standard collection names."""

    GLOBAL_VARIABLES: Final = "variables"
    VARIABLES: Final = "variables"
    LOCAL_VARIABLES: Final = "local_variables"
    METRIC_VARIABLES: Final = "metric_variables"
    MODEL_VARIABLES: Final = "model_variables"
    TRAINABLE_VARIABLES: Final = "trainable_variables"
    SUMMARIES: Final = "summaries"
    QUEUE_RUNNERS: Final = "queue_runners"
    TABLE_INITIALIZERS: Final = "table_initializer"
    ASSET_FILEPATHS: Final = "asset_filepaths"
    MOVING_AVERAGE_VARIABLES: Final = "moving_average_variables"
    REGULARIZATION_LOSSES: Final = "regularization_losses"
    CONCATENATED_VARIABLES: Final = "concatenated_variables"
    SAVERS: Final = "savers"
    WEIGHTS: Final = "weights"
    BIASES: Final = "biases"
    ACTIVATIONS: Final = "activations"
    UPDATE_OPS: Final = "update_ops"
    LOSSES: Final = "losses"
    SAVEABLE_OBJECTS: Final = "saveable_objects"
    RESOURCES: Final = "resources"
    LOCAL_RESOURCES: Final = "local_resources"
    TRAINABLE_RESOURCE_VARIABLES: Final = "trainable_resource_variables"
    INIT_OP: Final = "init_op"
    LOCAL_INIT_OP: Final = "local_init_op"
    READY_OP: Final = "ready_op"
    READY_FOR_LOCAL_INIT_OP: Final = "ready_for_local_init_op"
    SUMMARY_OP: Final = "summary_op"
    GLOBAL_STEP: Final = "global_step"
    EVAL_STEP: Final = "eval_step"
    TRAIN_OP: Final = "train_op"
    COND_CONTEXT: Final = "cond_context"
    WHILE_CONTEXT: Final = "while_context"


def _graph() -> Any:
    from opdock.graph.nodes.graph import get_default_graph

    return get_default_graph()


def add_to_collection(name: str, value: Any) -> None:
    """Appends `value` to a collection of the default graph."""
    _graph().add_to_collection(name, value)


def add_to_collections(names: Any, value: Any) -> None:
    """Appends `value` to each of the named collections of the default graph.

    Args:
        names: the names, or one.
        value: what is appended.
    """
    _graph().add_to_collections(names, value)


def get_collection(key: str, scope: str | None = None) -> list[Any]:
    """A copy of a collection, filtered by a name-prefix regular expression when given.

    Args:
        key: the collection's name.
        scope: the expression that names have to begin with.
    """
    return _graph().get_collection(key, scope)  # type: ignore[no-any-return]


def get_collection_ref(key: str) -> list[Any]:
    """The collection itself: changes to the list change the graph.

    Args:
        key: the collection's name.
    """
    return _graph().get_collection_ref(key)  # type: ignore[no-any-return]
