"""What goes from one mode to the other: for a while, or with all of TF 2's ways for good."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from opdock.eager.graph import EagerGraph
from opdock.graph.nodes.defaults import of_program
from opdock.graph.nodes.graph import default_graphs, get_default_graph, own_graph, plain_graph
from opdock.graph.variables import flavour
from opdock.io import protos
from opdock.ops.composed import modes
from opdock.util import tf2

__all__ = [
    "disable_eager_execution", "disable_v2_behavior", "eager_graph", "eager_mode",
    "enable_eager_execution", "enable_v2_behavior", "graph_mode",
]  # fmt: skip


def enable_eager_execution(
    config: Any = None, device_policy: Any = None, execution_mode: Any = None
) -> None:
    """Has operations run when they are made, for the rest of the program.

    Args:
        config: a ConfigProto for what runs.
        device_policy: accepted for TF's signature: inputs are copied where an operation needs them.
        execution_mode: accepted for TF's signature: operations run one after the other.

    Raises:
        TypeError: `config` is no ConfigProto.
        ValueError: `device_policy` or `execution_mode` is none of TF's, or the program has made
            operations already.
    """
    if config is not None and not isinstance(config, protos.ConfigProto):
        raise TypeError(f"config must be a tf.ConfigProto, but got {type(config)}")
    if device_policy not in (None, *range(4)):
        raise ValueError(
            "device_policy must be one of None, tf.contrib.eager.DEVICE_PLACEMENT_EXPLICIT, "
            "DEVICE_PLACEMENT_WARN, DEVICE_PLACEMENT_SILENT or "
            f"DEVICE_PLACEMENT_SILENT_FOR_INT32, but got {device_policy}"
        )
    if execution_mode not in (None, 0, 1):
        raise ValueError(
            "execution_mode must be one of None, tf.contrib.eager.SYNC or tf.contrib.eager.ASYNC, "
            f"but got {execution_mode}"
        )
    graph = own_graph()
    if graph.eager:
        return
    if graph.version:
        raise ValueError("tf.enable_eager_execution must be called at program startup.")
    of_program.everywhere = _eager_graph(config)


def disable_eager_execution() -> None:
    """Has operations be added to a graph again, if `enable_eager_execution` was called."""
    of_program.everywhere = None


def enable_v2_behavior() -> None:
    """Enables at once all that TF 1.15 can have as TF 2 has it.

    That is: operations run as they are made, variables are resource variables, entries of shapes
    are integers, `==` compares elements, and control flow is that of version 2.

    Raises:
        ValueError: the program has made operations already.
    """
    enable_eager_execution()
    tf2.enable()
    flavour.enable_resource_variables()
    modes.enable_v2_tensorshape()
    modes.enable_tensor_equality()
    modes.enable_control_flow_v2()


def disable_v2_behavior() -> None:
    """Undoes `enable_v2_behavior`."""
    disable_eager_execution()
    tf2.disable()
    flavour.disable_resource_variables()
    modes.disable_v2_tensorshape()
    modes.disable_tensor_equality()
    modes.disable_control_flow_v2()


def _eager_graph(config: Any = None) -> EagerGraph:
    if not isinstance(of_program.eager, EagerGraph):
        of_program.eager = EagerGraph(config)
    return of_program.eager


def eager_graph() -> EagerGraph:
    """The graph whose operations run as they are made: the default one, or the program's."""
    found = get_default_graph()
    return found if isinstance(found, EagerGraph) else _eager_graph()


@contextlib.contextmanager
def eager_mode(alone: bool = False) -> Iterator[None]:
    """Operations made inside run at once.

    Args:
        alone: whether seeds, scopes and the global step are to be the block's own.
    """
    graph = _eager_graph()
    with (EagerGraph(beside=graph) if alone else graph).as_default():
        yield


@contextlib.contextmanager
def graph_mode() -> Iterator[None]:
    """Operations made inside are added to a graph."""
    if not get_default_graph().eager:
        yield
        return
    around = (graph for graph in reversed(default_graphs()) if not graph.eager)
    with next(around, plain_graph()).as_default():
        yield
