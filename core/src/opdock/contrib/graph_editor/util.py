"""What the graph editor takes for operations and tensors, and how it names placeholders."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, overload

from opdock.graph.nodes.collections import GraphKeys
from opdock.graph.nodes.graph import Graph
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.ops.identity import placeholder
from opdock.util import nest

__all__ = [
    "ControlOutputs",
    "get_consuming_ops",
    "get_generating_ops",
    "get_tensors",
    "make_list_of_op",
    "make_list_of_t",
    "make_placeholder_from_dtype_and_shape",
    "make_placeholder_from_tensor",
    "placeholder_name",
]

_PREFIX: Final = "geph"  # the graph editor's placeholders


class ListView(Sequence[Any]):
    """A list that cannot be changed.

    Raises:
        TypeError: it is made of something else than a list.
    """

    def __init__(self, list_: list[Any]) -> None:
        if not isinstance(list_, list):
            raise TypeError(f"Expected a list, got: {type(list_)}.")
        self._list = list_

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> list[Any]: ...
    def __getitem__(self, index: int | slice) -> Any:
        return self._list[index]

    def __len__(self) -> int:
        return len(self._list)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._list)

    def __add__(self, other: Iterable[Any]) -> list[Any]:
        return [*self._list, *other]


# ---------------------------------------------------------------- trees and lists
def is_iterable(obj: Any) -> bool:
    """Whether there are elements in it; a tensor has none that are known."""
    if isinstance(obj, Tensor):
        return False
    try:
        iter(obj)
    except (TypeError, RuntimeError):  # datasets raise the latter
        return False
    return True


def concatenate_unique(la: list[Any], lb: Iterable[Any]) -> list[Any]:
    """Appends to `la`, and returns it, what of `lb` it does not have."""
    there = set(la)
    for item in lb:
        if item not in there:
            la.append(item)
            there.add(item)
    return la


def transform_tree(
    tree: Any, fn: Callable[[Any], Any], iterable_type: Callable[[Iterable[Any]], Any] = tuple
) -> Any:
    """A structure whose leaves are `fn` of the leaves of `tree`.

    Args:
        tree: a leaf, or dicts, named tuples and sequences of trees, which keep their types, or
            something else that can be iterated.
        fn: of a leaf.
        iterable_type: what becomes of the latter.
    """
    if nest.is_sequence(tree):
        return nest.map_structure(lambda leaf: transform_tree(leaf, fn, iterable_type), tree)
    if is_iterable(tree) and not isinstance(tree, str | bytes):
        return iterable_type(transform_tree(child, fn, iterable_type) for child in tree)
    return fn(tree)


def flatten_tree(tree: Any, leaves: list[Any] | None = None) -> list[Any]:
    """The leaves of a tree as `transform_tree` finds them, appended to `leaves` if given."""
    found = [] if leaves is None else leaves
    transform_tree(tree, found.append)
    return found


# ---------------------------------------------------------------- one graph
def check_graphs(*args: Any) -> None:
    """Checks that all that have a graph have the same.

    Raises:
        ValueError: they have not.
    """
    graph = None
    for i, item in enumerate(args):
        if item.graph is None:
            continue
        if graph is not None and item.graph is not graph:
            raise ValueError(f"Argument[{i}]: Wrong graph!")
        graph = item.graph


def get_unique_graph(tops: Any, check_types: Any = None, none_if_empty: bool = False) -> Any:
    """The graph of all of these operations and tensors; of a graph, itself.

    Args:
        tops: them.
        check_types: the class, or classes, that they must be of, either by default.
        none_if_empty: whether of none there is None.

    Raises:
        TypeError: one is of another class, or `tops` is not iterable.
        ValueError: they are of several graphs, or there are none.
    """
    if isinstance(tops, Graph):
        return tops
    if not is_iterable(tops):
        raise TypeError(f"{type(tops)} is not iterable")
    types = (Operation, Tensor) if check_types is None else check_types
    types = tuple(types) if is_iterable(types) else (types,)
    graph = None
    for item in tops:
        if not isinstance(item, types):
            names = ", ".join(str(t) for t in types)
            raise TypeError(f"Expected a type in ({names}), got: {type(item)}")
        if graph is not None and item.graph is not graph:
            raise ValueError(f"Operation {item} does not belong to given graph")
        graph = item.graph
    if graph is None and not none_if_empty:
        raise ValueError("Can't find the unique graph of an empty list")
    return graph


def make_list_of_op(
    ops: Any, check_graph: bool = True, allow_graph: bool = True, ignore_ts: bool = False
) -> list[Operation]:
    """Operations as a list.

    Args:
        ops: an operation, some of them, or a graph for all it has.
        check_graph: whether all must be of one graph.
        allow_graph: whether it may be a graph.
        ignore_ts: whether tensors among them are left out, rather than wrong.

    Raises:
        TypeError: there is something else among them.
        ValueError: they are of several graphs.
    """
    return _listed(ops, Operation, Graph.get_operations, check_graph, allow_graph, ignore_ts)


def make_list_of_t(
    ts: Any, check_graph: bool = True, allow_graph: bool = True, ignore_ops: bool = False
) -> list[Tensor]:
    """Tensors as a list.

    Args:
        ts: a tensor, some of them, or a graph for all it has.
        check_graph: whether all must be of one graph.
        allow_graph: whether it may be a graph.
        ignore_ops: whether operations among them are left out, rather than wrong.

    Raises:
        TypeError: there is something else among them.
        ValueError: they are of several graphs.
    """
    return _listed(ts, Tensor, get_tensors, check_graph, allow_graph, ignore_ops)


def _listed(
    items: Any, kind: type, of_graph: Callable[[Graph], list[Any]], check_graph: bool,
    allow_graph: bool, ignore_others: bool,
) -> list[Any]:  # fmt: skip
    if isinstance(items, Graph):
        if not allow_graph:
            raise TypeError("allow_graph is False: cannot convert a tf.Graph.")
        return of_graph(items)
    listed = list(items) if is_iterable(items) else [items]
    if listed and check_graph:
        get_unique_graph(listed, check_types=None if ignore_others else kind)
    return [item for item in listed if isinstance(item, kind)]


def get_tensors(graph: Graph) -> list[Tensor]:
    """All tensors of a graph, in the order of its operations.

    Raises:
        TypeError: it is not a graph.
    """
    if not isinstance(graph, Graph):
        raise TypeError(f"Expected a graph, got: {type(graph)}")
    return [t for op in graph.get_operations() for t in op.outputs]


def get_generating_ops(ts: Any) -> list[Operation]:
    """The operations that make tensors, one a tensor.

    Raises:
        TypeError: these are not tensors.
    """
    return [t.op for t in make_list_of_t(ts, allow_graph=False)]


def get_consuming_ops(ts: Any) -> list[Operation]:
    """The operations that take tensors, each once.

    Raises:
        TypeError: these are not tensors.
    """
    tensors = make_list_of_t(ts, allow_graph=False)
    return list(dict.fromkeys(op for t in tensors for op in t.consumers()))


class ControlOutputs:
    """Which operations wait for which, the other way round than `Operation.control_inputs`.

    Args:
        graph: the graph, as it is now.

    Raises:
        TypeError: it is not a graph.
    """

    def __init__(self, graph: Graph) -> None:
        if not isinstance(graph, Graph):
            raise TypeError(f"Expected a tf.Graph, got: {type(graph)}")
        self._graph = graph
        self._version: int | None = None
        self._control_outputs: dict[Operation, list[Operation]] = {}
        self.update()

    def update(self) -> ControlOutputs:
        """Looks at the graph again if it has changed; returns itself."""
        if self._version != self._graph.version:
            found: dict[Operation, dict[Operation, None]] = {}
            for op in self._graph.get_operations():
                for before in op.control_inputs:
                    found.setdefault(before, {})[op] = None
            self._control_outputs = {op: list(after) for op, after in found.items()}
            self._version = self._graph.version
        return self

    def get_all(self) -> dict[Operation, list[Operation]]:
        """The operations that wait for an operation, by the latter."""
        return self._control_outputs

    def get(self, op: Operation) -> Sequence[Operation]:
        """The operations that wait for this one."""
        return self._control_outputs.get(op, ())

    @property
    def graph(self) -> Graph:
        """The graph."""
        return self._graph


# ---------------------------------------------------------------- names
def scope_finalize(scope: str) -> str:
    """A scope with a slash at its end, unless it is the outermost."""
    return scope if not scope or scope.endswith("/") else f"{scope}/"


def scope_dirname(scope: str) -> str:
    """The scope of a name, with its slash."""
    return scope[: scope.rfind("/") + 1]


def scope_basename(scope: str) -> str:
    """A name without its scope."""
    return scope[scope.rfind("/") + 1 :]


def placeholder_name(
    t: Tensor | None = None, scope: str | None = None, prefix: str = _PREFIX
) -> str:
    """The name of a placeholder in the place of a tensor.

    Args:
        t: the tensor.
        scope: where the placeholder is to be, "" for the outermost; that of `t` when None.
        prefix: how its name begins.

    Raises:
        TypeError: `t` is neither None nor a tensor.
    """
    where = None if scope is None else scope_finalize(scope)
    if t is None:
        return f"{where or ''}{prefix}"
    if not isinstance(t, Tensor):
        raise TypeError(f"Expected a tf.Tensor, got: {type(t)}")
    base = scope_basename(t.op.name)
    if not base.startswith(f"{prefix}__"):
        base = f"{prefix}__{base}_{t.value_index}"
    return f"{scope_dirname(t.op.name) if where is None else where}{base}"


def make_placeholder_from_tensor(
    t: Tensor, scope: str | None = None, prefix: str = _PREFIX
) -> Tensor:
    """A placeholder in the place of a tensor, with its type and shape, in the default graph.

    Args:
        t: the tensor.
        scope: as of `placeholder_name`.
        prefix: as there.

    Raises:
        TypeError: `t` is not a tensor.
    """
    name = placeholder_name(t, scope=scope, prefix=prefix)
    return placeholder(t.dtype, t.raw_shape, name=name)


def make_placeholder_from_dtype_and_shape(
    dtype: Any, shape: Any = None, scope: str | None = None, prefix: str = _PREFIX
) -> Tensor:
    """A placeholder of a type and shape, in the default graph.

    Args:
        dtype: its type.
        shape: its shape, unknown when None.
        scope: where it is to be.
        prefix: its name.
    """
    return placeholder(dtype, shape, name=placeholder_name(scope=scope, prefix=prefix))


def get_predefined_collection_names() -> list[str]:
    """The names of the collections that TF itself has, which mean the same in every scope."""
    return [getattr(GraphKeys, key) for key in dir(GraphKeys) if not key.startswith("_")]


def find_corresponding_elem(
    target: Operation | Tensor, dst_graph: Graph, dst_scope: str = "", src_scope: str = ""
) -> Any:
    """The operation or tensor of the same name in another graph.

    Args:
        target: the operation or tensor.
        dst_graph: the other graph.
        dst_scope: the scope there that is what `src_scope` is here.
        src_scope: the scope here.

    Raises:
        TypeError: `target` is neither.
        ValueError: it is not in `src_scope`.
        KeyError: there is no such element.
    """
    if not isinstance(target, Operation | Tensor):
        raise TypeError(f"Expected tf.Tensor or tf.Operation, got: {type(target)}")
    inner = scope_finalize(src_scope)
    if not target.name.startswith(inner):
        raise ValueError(f"{target.name} does not start with {inner}")
    name = scope_finalize(dst_scope) + target.name[len(inner) :]
    if isinstance(target, Tensor):
        return dst_graph.get_tensor_by_name(name)
    return dst_graph.get_operation_by_name(name)


def find_corresponding(
    targets: Any, dst_graph: Graph, dst_scope: str = "", src_scope: str = ""
) -> Any:
    """`find_corresponding_elem` of a structure of operations and tensors."""
    return transform_tree(
        targets, lambda t: find_corresponding_elem(t, dst_graph, dst_scope, src_scope)
    )
