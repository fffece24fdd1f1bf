"""Copies parts of a graph, with other inputs, into another scope or another graph."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from opdock.contrib.graph_editor import reroute, select, subgraph, util
from opdock.contrib.graph_editor.subgraph import SubGraphView
from opdock.graph.nodes import registry
from opdock.graph.nodes.graph import Graph
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.serial.attr_proto import native_attr
from opdock.graph.serial.graphdef import build_node

__all__ = [
    "Transformer",
    "TransformerInfo",
    "assign_renamed_collections_handler",
    "copy",
    "copy_op_handler",
    "copy_with_input_replacements",
    "graph_replace",
    "keep_t_if_possible_handler",
    "replace_t_with_placeholder_handler",
    "transform_op_if_inside_handler",
]


class _Copying:
    """One copy being made: from where to where, and what has become of what so far.

    The handlers of a `Transformer` get it as `info`; a name with an underscore at its end is of
    the copy.
    """

    def __init__(
        self, sgv: SubGraphView, graph: Graph, scope: str, graph_: Graph, scope_: str
    ) -> None:
        self.sgv = sgv
        self.sgv_inputs_set = frozenset(sgv.inputs)
        self.ops = frozenset(sgv.ops)
        self.graph, self.scope = graph, scope
        self.graph_, self.scope_ = graph_, scope_
        self.control_outputs = util.ControlOutputs(graph)
        self.transformed_ops: dict[Operation, Operation] = {}
        self.transformed_ts: dict[Tensor, Tensor] = {}
        self.collections = {
            key: graph.get_collection(key) for key in graph.get_all_collection_keys()
        }
        # (tensor, what stands for it until it is copied, the operation that takes it)
        self.tmp_cyclic_ts: list[tuple[Tensor, Tensor, Operation]] = []

    def new_name(self, name: str) -> str:
        """The name of a copy.

        Raises:
            ValueError: what is copied is not in the scope out of which it is copied.
        """
        if not name.startswith(self.scope):
            raise ValueError(f"{name} does not belong to source scope: {self.scope}.")
        return self.scope_ + name[len(self.scope) :]


# ---------------------------------------------------------------- handlers
def replace_t_with_placeholder_handler(info: Any, t: Tensor) -> Tensor:
    """Puts a placeholder in the place of a tensor that comes from outside."""
    with info.graph_.as_default():
        return util.make_placeholder_from_tensor(t, scope=info.scope_)


def keep_t_if_possible_handler(info: Any, t: Tensor) -> Tensor:
    """Takes a tensor from outside as it is, or a placeholder if the copy is in another graph."""
    if info.graph is info.graph_:
        return t
    return replace_t_with_placeholder_handler(info, t)


def assign_renamed_collections_handler(info: Any, elem: Any, elem_: Any) -> None:
    """Puts a copy into the collections that the original is in.

    Collections that TF itself does not know are renamed as operations are.
    """
    known = util.get_predefined_collection_names()
    for name, items in info.collections.items():
        if any(item is elem for item in items):
            info.graph_.add_to_collection(name if name in known else info.new_name(name), elem_)


def transform_op_if_inside_handler(
    info: Any, op: Operation, keep_if_possible: bool = True
) -> Operation | None:
    """The copy of an operation; the operation itself, or None, if it is not copied.

    Args:
        info: of the copy.
        op: the operation.
        keep_if_possible: whether, in the same graph, it is itself.
    """
    if op in info.ops:
        copied: Operation = info.transformed_ops[op]
        return copied
    return op if keep_if_possible and info.graph is info.graph_ else None


def copy_op_handler(
    info: Any, op: Operation, new_inputs: Any, copy_shape: bool = False,
    nodedef_fn: Callable[[Any], Any] | None = None,
) -> tuple[Operation, list[Tensor]]:  # fmt: skip
    """Copies an operation.

    Args:
        info: of the copy.
        op: the operation.
        new_inputs: the inputs of the copy.
        copy_shape: whether its outputs get the static shapes of the original's as well.
        nodedef_fn: a function of its NodeDef that returns another.

    Returns:
        The copy, and its outputs.

    Raises:
        TypeError: `new_inputs` is a bool, as an argument of older handlers was.
        ValueError: the inputs, or what `nodedef_fn` returns, do not fit.
    """
    if isinstance(new_inputs, bool):
        raise TypeError("the `new_inputs` argument must be an iterable.")
    name_ = info.graph_.unique_name(info.new_name(op.name))
    spec, device, attrs = op.spec, op.device, dict(op.attrs)
    if nodedef_fn is not None:
        before, after = op.node_def, op.node_def
        after.name = name_
        after = nodedef_fn(after)
        spec, name_, device = registry.get(after.op), after.name, after.device
        # What the function left alone stays what it is: functions have more than their names.
        attrs = {
            key: attrs[key]
            if key in before.attr and before.attr[key] == value
            else native_attr(value, spec.attr_type(key))
            for key, value in after.attr.items()
        }
    with _no_scopes(info.graph_):
        op_ = build_node(info.graph_, spec, name_, list(new_inputs), attrs)
    op_._set_device(device)
    op_._original_op = op._original_op
    if copy_shape:
        for t, t_ in zip(op.outputs, op_.outputs, strict=True):
            t_.set_shape(t.raw_shape)
    return op_, op_.outputs


@contextlib.contextmanager
def _no_scopes(graph: Graph) -> Iterator[None]:
    """A copy has the device and the control inputs of its original, not those of its caller."""
    with graph.control_dependencies(None), graph.colocate_with(None, ignore_existing=True):
        yield


# ---------------------------------------------------------------- the transformer
class TransformerInfo:
    """What became of what.

    Args:
        info: of the copy.
    """

    def __init__(self, info: Any) -> None:
        self._graph, self._scope = info.graph, info.scope
        self._graph_, self._scope_ = info.graph_, info.scope_
        self._transformed_ops = info.transformed_ops
        self._transformed_ts = info.transformed_ts

    def transformed(self, original: Any, missing_fn: Callable[[Any], Any] | None = None) -> Any:
        """The copies of operations and tensors.

        Args:
            original: an operation or a tensor, or a structure of them.
            missing_fn: what is returned of those that were not copied; None of each by default.

        Raises:
            TypeError: something is neither.
        """
        return self._mapped(original, missing_fn, self._transformed_ops, self._transformed_ts)

    def original(self, transformed: Any, missing_fn: Callable[[Any], Any] | None = None) -> Any:
        """The originals of copies; arguments and errors as of `transformed`."""
        ops = {copied: op for op, copied in self._transformed_ops.items()}
        ts = {copied: t for t, copied in self._transformed_ts.items()}
        return self._mapped(transformed, missing_fn, ops, ts)

    @staticmethod
    def _mapped(
        tree: Any, missing_fn: Callable[[Any], Any] | None, ops: Mapping[Any, Any],
        ts: Mapping[Any, Any],
    ) -> Any:  # fmt: skip
        def mapped(item: Any) -> Any:
            if not isinstance(item, Operation | Tensor):
                raise TypeError(f"Expected a tf.Tensor or a tf.Operation, got a {type(item)}")
            known = ops if isinstance(item, Operation) else ts
            if item in known:
                return known[item]
            return None if missing_fn is None else missing_fn(item)

        return util.transform_tree(tree, mapped)

    def __str__(self) -> str:
        if self._graph is self._graph_:
            where = f"Within graph[{id(self._graph)}]{'' if self._scope_ else ' IN-PLACE'}"
        else:
            where = f"graph[{id(self._graph)}] => graph[{id(self._graph_)}]"
        lines = ["Transform result info:", f"  {where}"]
        if self._scope:
            lines.append(f"  Relative to source scope: {self._scope}")
        if self._scope_:
            lines.append(f"  Scope destination: {self._scope_}")
        lines.append("Operations mapping:")
        lines += [f"  {op.name} => {op_.name}" for op, op_ in self._transformed_ops.items()]
        return "\n".join(lines) + "\n"


class Transformer:
    """Copies views; what happens to their parts, its handlers say, which may be others.

    Attributes:
        transform_op_handler: `(info, op, new_inputs)` gives an operation and its outputs.
        transform_control_input_handler: `(info, op)` gives what to wait for, or None.
        assign_collections_handler: `(info, elem, elem_)` puts a copy into collections.
        transform_external_input_handler: `(info, t)` gives what is taken for an input.
        transform_external_hidden_input_handler: the same, for what the view does not name.
        transform_original_op_handler: `(info, op)` of the operation that one was made for.
    """

    def __init__(self) -> None:
        self.transform_op_handler: Callable[..., Any] = copy_op_handler
        self.transform_control_input_handler: Callable[..., Any] = transform_op_if_inside_handler
        self.assign_collections_handler: Callable[..., Any] = assign_renamed_collections_handler
        self.transform_external_input_handler: Callable[..., Any] = (
            replace_t_with_placeholder_handler
        )
        self.transform_external_hidden_input_handler: Callable[..., Any] = (
            keep_t_if_possible_handler
        )
        self.transform_original_op_handler: Callable[..., Any] = transform_op_if_inside_handler

    def __call__(
        self, sgv: Any, dst_graph: Graph, dst_scope: str, src_scope: str = "",
        reuse_dst_scope: bool = False,
    ) -> tuple[SubGraphView, TransformerInfo]:  # fmt: skip
        """Copies a view.

        Args:
            sgv: the view, or what `make_view` makes one of.
            dst_graph: the graph that gets the copy.
            dst_scope: the scope in which it is there.
            src_scope: the scope of the view that this one takes the place of.
            reuse_dst_scope: whether the scope may exist.

        Returns:
            The copy, and what became of what.

        Raises:
            TypeError: `dst_graph` is no graph.
            ValueError: an operation is not in `src_scope`, or a handler returned the original.
        """
        view = subgraph.make_view(sgv)
        if not isinstance(dst_graph, Graph):
            raise TypeError(f"Expected a tf.Graph, got: {type(dst_graph)}")
        scope_ = util.scope_finalize(dst_scope)
        if scope_ and not reuse_dst_scope:
            scope_ = util.scope_finalize(dst_graph.unique_name(scope_[:-1]))
        graph = dst_graph if view.graph is None else view.graph
        info = _Copying(view, graph, util.scope_finalize(src_scope), dst_graph, scope_)
        self._copy_ops(info)
        self._close_cycles(info)
        self._connect(info)
        return self._view(info), TransformerInfo(info)

    def _copy_ops(self, info: _Copying) -> None:
        for op in sorted(info.sgv.ops):
            new_inputs = [self._input(info, t, op) for t in op.inputs]
            op_, outputs_ = self.transform_op_handler(info, op, new_inputs)
            if op_ is op:
                raise ValueError("In-place transformation not allowed.")
            info.transformed_ops[op] = op_
            self.assign_collections_handler(info, op, op_)
            for t, t_ in zip(op.outputs, outputs_, strict=False):
                info.transformed_ts[t] = t_
                self.assign_collections_handler(info, t, t_)

    def _input(self, info: _Copying, t: Tensor, user: Operation) -> Tensor:
        """What the copy of an operation takes for one of its inputs."""
        found: Tensor
        if t in info.transformed_ts:
            return info.transformed_ts[t]
        if t in info.sgv_inputs_set:
            found = self.transform_external_input_handler(info, t)
        elif t.op not in info.ops:
            found = self.transform_external_hidden_input_handler(info, t)
        else:
            # The way back of a loop that was built by hand: known when the loop is copied.
            if user.type == "Merge" and user.inputs[0] in info.transformed_ts:
                found = info.transformed_ts[user.inputs[0]]
            else:
                with info.graph_.as_default():
                    found = util.make_placeholder_from_tensor(t, info.scope_, prefix="geph_tmp")
            info.tmp_cyclic_ts.append((t, found, user))
        return found

    def _close_cycles(self, info: _Copying) -> None:
        for t, stand_in, user in info.tmp_cyclic_ts:
            user_ = info.transformed_ops[user]
            # The last one: that which enters a loop stands for the way back too, after itself.
            index = max(i for i, t_ in enumerate(user_.inputs) if t_ is stand_in)
            user_._update_input(index, info.transformed_ts[t])

    def _connect(self, info: _Copying) -> None:
        """Gives the copies what they wait for, are colocated with, and were made for."""
        for op in info.sgv.ops:
            op_ = info.transformed_ops[op]
            if op._original_op is not None:
                op_._original_op = self.transform_original_op_handler(info, op._original_op)
            waited_for = (self.transform_control_input_handler(info, c) for c in op.control_inputs)
            reroute.add_control_inputs(op_, [c for c in waited_for if c is not None])
            if op_.attrs.get("_class"):
                op_.attrs["_class"] = _groups(info, op_.attrs["_class"])

    def _view(self, info: _Copying) -> SubGraphView:
        view_ = SubGraphView(list(info.transformed_ops.values()))

        def still_there(ts: Sequence[Tensor], ts_: Sequence[Tensor]) -> list[Tensor]:
            copies = (info.transformed_ts.get(t) for t in ts)
            return [t_ for t_ in copies if t_ is not None and t_ in ts_]

        return view_.remap(
            still_there(info.sgv.inputs, view_.inputs),
            still_there(info.sgv.outputs, view_.outputs),
        )


def _groups(info: _Copying, groups: Sequence[Any]) -> list[Any]:
    """Colocation groups, by the names of the copies; what another graph has not is left out."""
    found = []
    for group in groups:
        name = group[5:] if isinstance(group, str) and group.startswith("loc:@") else None
        target = None if name is None else info.graph._nodes_by_name.get(name)
        if target in info.transformed_ops:
            found.append(f"loc:@{info.transformed_ops[target].name}")
        elif name is None or info.graph is info.graph_:
            found.append(group)
    return found


# ---------------------------------------------------------------- copies
def copy(
    sgv: Any, dst_graph: Graph | None = None, dst_scope: str = "", src_scope: str = "",
    reuse_dst_scope: bool = False,
) -> tuple[SubGraphView, TransformerInfo]:  # fmt: skip
    """Copies a view; what goes into it, placeholders stand for.

    Args:
        sgv: the view, or what `make_view` makes one of.
        dst_graph: the graph that gets the copy, its own when None.
        dst_scope: the scope in which it is there.
        src_scope: the scope of the view that this one takes the place of.
        reuse_dst_scope: whether the scope may exist.

    Returns:
        The copy, and what became of what.

    Raises:
        TypeError: `dst_graph` is no graph.
        ValueError: an operation is not in `src_scope`.
    """
    view = subgraph.make_view(sgv)
    graph_: Any = view.graph if dst_graph is None else dst_graph
    return Transformer()(view, graph_, dst_scope, src_scope, reuse_dst_scope)


def copy_with_input_replacements(
    sgv: Any, replacement_ts: Mapping[Any, Any], dst_graph: Graph | None = None,
    dst_scope: str = "", src_scope: str = "", reuse_dst_scope: bool = False,
) -> tuple[SubGraphView, TransformerInfo]:  # fmt: skip
    """Copies a view with other inputs.

    Args:
        sgv: the view, or what `make_view` makes one of.
        replacement_ts: what is taken in the place of which input; the rest stays as it is, or
            gets placeholders in another graph.
        dst_graph: as of `copy`, with those that follow, returns and errors.
        dst_scope: as there.
        src_scope: as there.
        reuse_dst_scope: as there.
    """
    view = subgraph.make_view(sgv)
    graph_: Any = view.graph if dst_graph is None else dst_graph

    def replaced(info: Any, t: Tensor) -> Any:
        return replacement_ts[t] if t in replacement_ts else keep_t_if_possible_handler(info, t)

    copier = Transformer()
    copier.transform_external_input_handler = replaced
    return copier(view, graph_, dst_scope, src_scope, reuse_dst_scope)


def graph_replace(
    target_ts: Any, replacement_ts: Mapping[Any, Any], dst_scope: str = "", src_scope: str = "",
    reuse_dst_scope: bool = False,
) -> Any:  # fmt: skip
    """Tensors as they would be if others had other values: what is between is copied.

    Args:
        target_ts: the tensors, one or a structure of them.
        replacement_ts: what is to stand in the place of which tensor.
        dst_scope: the scope of the copies.
        src_scope: the scope that this one takes the place of.
        reuse_dst_scope: whether the scope may exist.

    Returns:
        The structure, with the copies of those that depend on what is replaced.

    Raises:
        ValueError: none of them does.
    """
    targets = util.flatten_tree(target_ts)
    graph = util.get_unique_graph(targets, check_types=Tensor)
    ops = select.get_walks_intersection_ops(
        list(replacement_ts), targets, control_ios=util.ControlOutputs(graph)
    )
    if not ops:
        raise ValueError("Targets and replacements are not connected!")
    _, info = copy_with_input_replacements(
        ops, replacement_ts, None, dst_scope, src_scope, reuse_dst_scope
    )
    return info.transformed(target_ts, missing_fn=lambda original: original)
