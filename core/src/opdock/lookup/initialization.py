"""`tf.tables_initializer`: fills all tables of a graph."""

from __future__ import annotations

from opdock.graph.nodes.collections import GraphKeys, get_collection
from opdock.graph.nodes.operation import Operation
from opdock.ops.control import group, no_op

__all__ = ["initialize_all_tables", "tables_initializer"]


def tables_initializer(name: str = "init_all_tables") -> Operation:
    """An operation that fills all tables of the default graph.

    Args:
        name: a name for the operation.

    Returns:
        The operation; one that does nothing if there are no tables.
    """
    initializers = get_collection(GraphKeys.TABLE_INITIALIZERS)
    return group(*initializers, name=name) if initializers else no_op(name=name)


def initialize_all_tables(name: str = "init_all_tables") -> Operation:
    """Deprecated; see `tables_initializer`."""
    return tables_initializer(name)
