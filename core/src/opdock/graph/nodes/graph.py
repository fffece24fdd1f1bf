"""`Graph`: the container of operations, with the scopes under which operations are made."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

from opdock.dtypes import DType
from opdock.graph.nodes.adoption import adopted
from opdock.graph.nodes.constant_value import constant_for_shapes
from opdock.graph.nodes.contents import GraphContents, as_operation, as_text, is_slices
from opdock.graph.nodes.defaults import made_default, of_program, of_thread, renew_eager_graphs
from opdock.graph.nodes.devicespec import DeviceFunction, DeviceSpec, merge_device
from opdock.graph.nodes.frames import capture_frames, with_line
from opdock.graph.nodes.mode import GraphMode
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.nodes.registry import OpSpec, ShapeSig
from opdock.graph.nodes.thread_scopes import Controller, Scopes, ThreadScopes, ThreadState, alone
from opdock.shapes import Shape

_OP_NAME: Final = re.compile(r"^[A-Za-z0-9.][A-Za-z0-9_.\\/>-]*$")
_SCOPE_NAME: Final = re.compile(r"^[A-Za-z0-9_.\\/>-]*$")


class Graph(GraphMode, GraphContents):
    """A dataflow graph. Operations are added to the default graph; a Session runs them."""

    def __init__(self) -> None:
        super().__init__()
        self._names_in_use: dict[str, int] = {}
        self._thread = ThreadState()
        self._count = [0]  # of operations; bodies of loops and branches count on
        self._version = 0
        self._edits = 0
        self._scopes: Scopes | ThreadScopes = Scopes([], [], [])
        self._container = ""
        self._scope_attrs: dict[str, Any] = {}
        self._current_original_op: Operation | None = None
        self._gradient_overrides: dict[str, str] = {}
        self._kernel_labels: dict[str, str] = {}
        self._known_values: dict[Operation | Tensor, Any] = {}  # see `constant_value`
        # By `Operation._update_input`.
        self._mistyped: dict[tuple[Operation, int], tuple[DType, str]] = {}
        self._functions: dict[str, Any] = {}  # see `graph.control.function_op`
        self._seed: int | None = None
        self._seed_used = False  # by an op that was given none of its own
        self._building_function = False

    # ------------------------------------------------------------ facts
    @property
    def seed(self) -> int | None:
        """The graph-level random seed."""
        return self._seed

    @seed.setter
    def seed(self, seed: int | None) -> None:
        self._seed = seed

    @property
    def version(self) -> int:
        """Grows with every change of the graph."""
        return self._version

    @property
    def finalized(self) -> bool:
        """Whether the graph is read-only."""
        return self._finalized

    @property
    def building_function(self) -> bool:
        """Whether this graph is the body of a function."""
        return self._building_function

    @property
    def collections(self) -> list[Any]:
        """The names of the collections."""
        return list(self._collections)

    def finalize(self) -> None:
        """Makes the graph read-only."""
        self._finalized = True

    def _unsafe_unfinalize(self) -> None:
        self._finalized = False

    def switch_to_thread_local(self) -> None:
        """Gives each thread device scopes, colocation and control dependencies of its own.

        All begin with the present ones. Without it what one thread enters, operations that others
        make meanwhile are in as well, as in TF.
        """
        scopes = self._scopes
        if not isinstance(scopes, ThreadScopes):
            self._scopes = ThreadScopes(scopes.devices, scopes.colocation, scopes.controllers)

    def _changed(self) -> None:
        """An existing node was edited: programs compiled from it are stale."""
        self._version += 1
        self._edits += 1
        self._known_values.clear()
        self._tell()

    @property
    def _variable_creator_stack(self) -> tuple[Any, ...]:
        return self._thread.variable_creators

    @_variable_creator_stack.setter
    def _variable_creator_stack(self, creators: tuple[Any, ...]) -> None:
        self._thread.variable_creators = creators

    # ------------------------------------------------------------ making operations
    def _create_op(
        self,
        spec: OpSpec,
        name: str,
        inputs: list[Tensor],
        attrs: dict[str, Any],
        output_dtypes: list[DType],
    ) -> Operation:
        """Adds a node under the current scopes. `name` is unique already."""
        if self._finalized:
            self._check_not_finalized()
        for i, tensor in enumerate(inputs):
            if tensor._op.graph is not self:
                inputs = [*inputs]
                inputs[i] = self._adopt(tensor, name)
        if name not in self._names_in_use and not _OP_NAME.match(name):
            raise ValueError(f"'{name}' is not a valid node name")
        sig = ShapeSig(
            spec, name, [t._shape for t in inputs], [t._dtype for t in inputs], attrs,
            len(output_dtypes), lambda i: constant_for_shapes(inputs[i]),
        )  # fmt: skip
        frames = capture_frames()
        try:
            output_shapes = self._infer(sig, inputs)
        except ValueError as e:
            raise with_line(e, frames) from None
        control = self._control_inputs_for(inputs) if self._scopes.controllers else []
        with self._lock:
            self._count[0] += 1
            op = Operation(
                self, spec, name, inputs, attrs, control, output_dtypes, output_shapes,
                self._last_id, frames,
            )  # fmt: skip
            self._ops.append(op)
            self._nodes_by_name[name] = op
            self._kinds.add(spec)
            self._version += 1
        for tensor in inputs:
            tensor._add_consumer(op)
        self._apply_scopes(op)
        return op

    def _infer(self, sig: ShapeSig, inputs: list[Tensor]) -> list[Shape]:
        return sig.spec.infer(sig)

    def _apply_scopes(self, op: Operation) -> None:
        for function in reversed(self._scopes.devices):
            if function is None:
                break
            op._set_device(function(op))
        if self._scopes.colocation:
            groups: set[str] = set()
            for other in self._scopes.colocation:
                # A function body runs where its caller is; names of outer nodes mean nothing in it.
                if other.graph is self:
                    groups.update(g.decode() for g in other.colocation_groups())
                if other._device:
                    op._device = other._device
            if groups:
                op.attrs["_class"] = sorted(groups)
        if self._container and "container" in op.attrs and not op.attrs["container"]:
            op.attrs["container"] = self._container
        if self._current_original_op is not None:
            op._original_op = self._current_original_op
        if self._scope_attrs:
            from opdock.graph.serial.attr_proto import native_attr

            for key, value in self._scope_attrs.items():
                op.attrs.setdefault(key, native_attr(value(op) if callable(value) else value))
        override = self._gradient_overrides.get(op.type)
        if override is not None:
            op.attrs.setdefault("_gradient_op_type", override)
        label = self._kernel_labels.get(op.type)
        if label is not None:
            op.attrs.setdefault("_kernel", label)
        for controller in self._scopes.controllers:
            controller.seen.add(op)

    def _control_inputs_for(self, inputs: list[Tensor]) -> list[Operation]:
        input_ops = {t._op for t in inputs}
        out: dict[Operation, None] = {}
        for controller in self._scopes.controllers:
            # An input made inside the block depends on the controls already.
            if controller.seen.isdisjoint(input_ops):
                out.update(dict.fromkeys(c for c in controller.inputs if c not in input_ops))
        return list(out)

    def _adopt(self, tensor: Tensor, user: str = "") -> Tensor:
        """A tensor of another graph as one of this graph's; function bodies capture it."""
        return adopted(tensor, user, self)

    def _copy_constant(self, tensor: Tensor) -> Tensor:
        op = tensor._op
        with alone(self._scopes):
            name = self._node_name(op.name.rpartition("/")[2])
            return self._create_op(op.spec, name, [], dict(op.attrs), [tensor._dtype]).outputs[0]

    def _may_capture(self, other: Graph) -> bool:
        return False

    def _check_same_graph(self, tensor: Tensor) -> None:
        if tensor._op.graph is not self:
            raise ValueError(f"{tensor} must be from the same graph as {self}.")

    # ------------------------------------------------------------ names
    @property
    def _name_stack(self) -> str:
        return self._thread.name_stack

    @_name_stack.setter
    def _name_stack(self, scope: str) -> None:
        self._thread.name_stack = scope

    def unique_name(self, name: str, mark_as_used: bool = True) -> str:
        """A name that no operation or scope has, under the current name scope."""
        with self._lock:
            return self._unique_name(as_text(name), mark_as_used)

    _node_name = unique_name  # graphs without nodes need not make theirs unique

    def _unique_name(self, name: str, mark_as_used: bool) -> str:
        if self._name_stack:
            name = self._name_stack + "/" + name
        key = name.lower()
        count = self._names_in_use.get(key, 0)
        if mark_as_used:
            self._names_in_use[key] = count + 1
        if count == 0:
            if not _OP_NAME.match(name):
                told = f"'{name}' is not a valid node name; it must match {_OP_NAME.pattern}"
                raise ValueError(told)
            return name
        base, unique = key, key
        while unique in self._names_in_use:
            unique = f"{base}_{count}"
            count += 1
        if mark_as_used:
            self._names_in_use |= {base: count, unique: 1}
        return f"{name}_{count - 1}"

    def _new_scope(self, name: str) -> str:
        """The name stack in a scope that is to be entered."""
        name = as_text(name)
        if name[-1] == "/":
            return name[:-1]
        if not (self.eager or (_SCOPE_NAME if self._name_stack else _OP_NAME).match(name)):
            raise ValueError(f"'{name}' is not a valid scope name")
        return self._node_name(name)

    @contextlib.contextmanager
    def name_scope(self, name: str | None) -> Iterator[str]:
        """Prefixes the names of operations made inside; yields the scope with a trailing "/".

        A name that ends in "/" re-enters that scope; None or "" resets to the top.
        """
        new = self._new_scope(name) if name else ""
        old, self._name_stack = self._name_stack, new
        try:
            # "/" is the top under a name that ends in "/", as scopes to re-enter do.
            yield new + "/" if new or name else ""
        finally:
            self._name_stack = old

    def get_name_scope(self) -> str:
        """The current name scope, without trailing "/"."""
        return self._name_stack

    # ------------------------------------------------------------ scopes
    @contextlib.contextmanager
    def device(self, device_name_or_function: Any) -> Iterator[None]:
        """Places operations made inside; takes a string, a DeviceSpec, a function or None."""
        if device_name_or_function is None or callable(device_name_or_function):
            entry: DeviceFunction | None = device_name_or_function
        else:
            entry = merge_device(device_name_or_function)
        old, depth = self._scopes.devices, self._thread.device_depth + 1
        self._scopes.devices, self._thread.device_depth = [*old, entry], depth
        try:
            yield
        finally:
            if self._thread.device_depth != depth:
                raise RuntimeError("Exiting device scope without proper scope nesting.")
            self._scopes.devices, self._thread.device_depth = old, depth - 1

    def _apply_device_functions(self, op: Any) -> None:
        """Tells a library's own object, by its `_set_device`, where ops would be placed."""
        for function in reversed(self._scopes.devices):
            if function is None:
                break
            op._set_device(DeviceSpec.from_string(function(op)))

    @contextlib.contextmanager
    def colocate_with(self, op: Any, ignore_existing: bool = False) -> Iterator[None]:
        """Puts operations made inside on the device of `op`."""
        if op is None and not ignore_existing:
            raise ValueError(
                "Trying to reset colocation (op is None) but ignore_existing is not True"
            )
        target = None if op is None else as_operation(op)
        devices, self._scopes.devices = self._scopes.devices, []
        colocation = self._scopes.colocation
        self._scopes.colocation = [] if ignore_existing else list(colocation)
        if target is not None:
            self._scopes.colocation.append(target)
        try:
            yield
        finally:
            self._scopes.devices = devices
            self._scopes.colocation = colocation

    @contextlib.contextmanager
    def control_dependencies(self, control_inputs: Iterable[Any] | None) -> Iterator[None]:
        """Runs `control_inputs` before the operations made inside; None clears outer blocks."""
        if control_inputs is None:
            controller = Controller([], True)
        else:
            found = [
                # To wait for a resource variable is to wait for its handle, not to read it.
                self._control_input(
                    item.values if is_slices(item)
                    else item.op if hasattr(item, "_gradient_source") else item
                )
                for item in control_inputs
            ]  # fmt: skip
            ops = [op for op in dict.fromkeys(found) if op is not None]
            controller = Controller(ops, False)
        saved = self._scopes.controllers
        self._scopes.controllers = [] if controller.new_stack else [*saved, controller]
        try:
            yield
        finally:
            self._scopes.controllers = saved

    def _control_input(self, item: Any) -> Operation | None:
        """The operation of this graph to wait for in place of `item`; None for none."""
        found = self.as_graph_element(item)
        return found.op if isinstance(found, Tensor) else found

    @contextlib.contextmanager
    def container(self, container_name: str) -> Iterator[str]:
        """Puts variables and queues made inside into a resource container."""
        old, self._container = self._container, container_name
        try:
            yield container_name
        finally:
            self._container = old

    @contextlib.contextmanager
    def gradient_override_map(self, op_type_map: dict[str, str]) -> Iterator[None]:
        """Gives operations made inside other gradients: op type to registered gradient name."""
        if not isinstance(op_type_map, dict) or not all(
            isinstance(text, str) for item in op_type_map.items() for text in item
        ):
            raise TypeError("op_type_map must be a dictionary mapping strings to strings")
        old = self._gradient_overrides
        self._gradient_overrides = {**old, **op_type_map}
        try:
            yield
        finally:
            self._gradient_overrides = old

    @contextlib.contextmanager
    def _kernel_label_map(self, op_to_label: dict[str, str]) -> Iterator[None]:
        old = self._kernel_labels
        self._kernel_labels = {**old, **op_to_label}
        try:
            yield
        finally:
            self._kernel_labels = old

    @contextlib.contextmanager
    def _attr_scope(self, attr_map: dict[str, Any]) -> Iterator[None]:
        """Gives operations made inside more attributes; None takes one away again."""
        old = self._scope_attrs
        self._scope_attrs = {k: v for k, v in {**old, **attr_map}.items() if v is not None}
        try:
            yield
        finally:
            self._scope_attrs = old

    @contextlib.contextmanager
    def _original_op(self, op: Operation) -> Iterator[None]:
        """Notes that operations made inside come of `op`, as a gradient does."""
        old, self._current_original_op = self._current_original_op, op
        try:
            yield
        finally:
            self._current_original_op = old

    @contextlib.contextmanager
    def as_default(self) -> Iterator[Graph]:
        """Makes this the default graph of the thread."""
        with made_default(self):
            yield self

    def _renewed(self) -> Graph:
        """An empty graph in the place of this one."""
        return Graph()

    # ------------------------------------------------------------ serialization
    def as_graph_def(self, from_version: int | None = None, add_shapes: bool = False) -> Any:
        """The graph as a GraphDef message."""
        from opdock.graph.serial.graphdef import to_graph_def  # it knows of graphs

        return to_graph_def(self, from_version, add_shapes)

    def create_op(
        self, op_type: str, inputs: list[Any], dtypes: Any = None, input_types: Any = None,
        name: str | None = None, attrs: dict[str, Any] | None = None, **unused: Any,
    ) -> Operation:  # fmt: skip
        """Adds a node of a registered op type from flat inputs and raw attributes.

        Raises:
            NotFoundError: the op type is not registered.
        """
        from opdock.graph.serial.graphdef import create_from_flat

        return create_from_flat(self, op_type, inputs, name, attrs or {})


# ---------------------------------------------------------------- default graph
def get_default_graph() -> Graph:
    """The innermost `as_default` graph of the thread, or the thread's own.

    As in TensorFlow, what another thread builds goes into a graph of that thread's, unless it
    says `with graph.as_default()` itself.
    """
    graphs = of_thread.graphs
    return graphs[-1] if graphs else own_graph()


def own_graph() -> Graph:
    """The graph of the thread around all `as_default` ones."""
    return of_program.everywhere or plain_graph()


def plain_graph() -> Graph:
    """The thread's own graph, to which operations are added."""
    if of_thread.own is None:
        of_thread.own = Graph()
    return of_thread.own


def default_graphs() -> list[Graph]:
    """The `as_default` graphs of the thread, innermost last, over its own one."""
    return [own_graph(), *of_thread.graphs]


def reset_default_graph() -> None:
    """Replaces the thread's own default graph by an empty one.

    Where operations run as they are made, what is kept of them beside their values goes too:
    collections, the global step. Variables that somebody has live on, as do the seeds.

    Raises:
        AssertionError: called inside a `with graph.as_default()` block.
    """
    graphs, before = of_thread.graphs, of_thread.own
    for graph in graphs:
        # The way in which operations run is no graph of the program's.
        if not (graph.eager or (graph is before and _has_modes())):
            raise AssertionError(
                "Do not use tf.reset_default_graph() to clear nested graphs. If you need a cleared "
                "graph, exit the nesting and create a new graph."
            )
    of_thread.own = Graph()
    graphs[:] = [of_thread.own if graph is before else graph for graph in graphs]
    renew_eager_graphs()


def _has_modes() -> bool:
    """Whether operations run as they are made around here, so that a default graph may be a way."""
    return of_program.everywhere is not None or any(graph.eager for graph in of_thread.graphs)


def begin_anew() -> None:
    """Resets the default graph, whatever `as_default` blocks the thread is in."""
    graphs = of_thread.graphs
    graphs[:] = [g if g.eager else plain_graph() for g in graphs] if _has_modes() else []
    reset_default_graph()


__all__ = ["Graph", "get_default_graph", "reset_default_graph"]
