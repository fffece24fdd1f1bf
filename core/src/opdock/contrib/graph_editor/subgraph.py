"""`SubGraphView`: some operations of a graph, with the tensors that go in and come out."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self

from opdock.contrib.graph_editor import select, util
from opdock.graph.nodes.graph import Graph
from opdock.graph.nodes.operation import Operation, Tensor

__all__ = ["SubGraphView", "make_view", "make_view_from_scope"]


class SubGraphView:
    """Some operations of a graph as a function: tensors go in, tensors come out.

    A view changes nothing, and does not follow what others change, but the functions of the graph
    editor that change a graph bring the views up to date that they are given. A tensor that none
    of the operations takes or makes passes through: it is both an input and an output.

    Args:
        inside_ops: the operations.
        passthrough_ts: tensors that pass through; what the operations take or make is left out.

    Raises:
        TypeError: they are not operations and tensors.
        ValueError: they are of several graphs.
    """

    def __init__(self, inside_ops: Any = (), passthrough_ts: Any = ()) -> None:
        self._ops = util.make_list_of_op(inside_ops)
        through = util.make_list_of_t(passthrough_ts)
        self._graph: Graph | None = util.get_unique_graph(
            [*self._ops, *through], none_if_empty=True
        )
        inputs, outputs, inside = select.compute_boundary_ts(self._ops)
        known = {*inputs, *outputs, *inside}
        self._passthrough_ts = [t for t in through if t not in known]
        self._input_ts = inputs + self._passthrough_ts
        self._output_ts = outputs + self._passthrough_ts

    # ------------------------------------------------------------ copies
    def __copy__(self) -> SubGraphView:
        new = SubGraphView.__new__(type(self))
        new._assign_from(self)
        return new

    def copy(self) -> SubGraphView:
        """Another view of the same operations."""
        return self.__copy__()

    def _assign_from(self, other: SubGraphView) -> None:
        if not isinstance(other, SubGraphView):
            raise TypeError(f"Expected SubGraphView, got: {type(other)}")
        self._graph = other._graph
        self._ops = list(other._ops)
        self._passthrough_ts = list(other._passthrough_ts)
        self._input_ts = list(other._input_ts)
        self._output_ts = list(other._output_ts)

    # ------------------------------------------------------------ other inputs and outputs
    def remap_default(
        self, remove_input_map: bool = True, remove_output_map: bool = True
    ) -> SubGraphView:
        """The view with all that goes in, and all that comes out, again.

        Args:
            remove_input_map: whether the inputs are all again.
            remove_output_map: whether the outputs are.
        """
        new = self.copy()
        inputs, outputs, _ = select.compute_boundary_ts(self._ops)
        if remove_input_map:
            new._input_ts = inputs + self._passthrough_ts
        if remove_output_map:
            new._output_ts = outputs + self._passthrough_ts
        return new

    def remap_inputs(self, new_input_indices: Iterable[Any]) -> SubGraphView:
        """The view with some of its inputs, in another order; the rest counts as given.

        Args:
            new_input_indices: inputs, or their numbers, none twice.

        Raises:
            ValueError: there is no such input, or one is there twice.
        """
        return self.remap(new_input_indices)

    def remap_outputs(self, new_output_indices: Iterable[Any]) -> SubGraphView:
        """The view with some of its outputs, in another order, some of them twice or more.

        Args:
            new_output_indices: outputs, or their numbers.

        Raises:
            ValueError: there is no such output.
        """
        return self.remap(new_output_indices=new_output_indices)

    def remap(
        self,
        new_input_indices: Iterable[Any] | None = None,
        new_output_indices: Iterable[Any] | None = None,
    ) -> SubGraphView:
        """The view with other inputs and outputs; see `remap_inputs` and `remap_outputs`."""
        new = self.copy()
        if new_input_indices is not None:
            new._input_ts = _picked(self._input_ts, new_input_indices)
            if len(set(new._input_ts)) != len(new._input_ts):
                raise ValueError(f"Found repetition in mapping: {new_input_indices}")
        if new_output_indices is not None:
            new._output_ts = _picked(self._output_ts, new_output_indices)
        return new

    def remap_outputs_make_unique(self) -> SubGraphView:
        """The view with each of its outputs once."""
        new = self.copy()
        new._output_ts = list(dict.fromkeys(self._output_ts))
        return new

    def remap_outputs_to_consumers(self) -> SubGraphView:
        """The view with each of its outputs once for each operation that takes it."""
        new = self.remap_outputs_make_unique()
        new._output_ts = [t for t in new._output_ts for _ in t.consumers()]
        return new

    def remove_unused_ops(self, control_inputs: bool = True) -> SubGraphView:
        """The view without operations that have to do with none of its inputs and outputs.

        Args:
            control_inputs: whether what others wait for has.
        """
        new = self.copy()
        used = select.get_walks_union_ops(
            self.connected_inputs, self.connected_outputs, within_ops=self._ops,
            control_inputs=control_inputs,
        )  # fmt: skip
        known = frozenset(used)
        new._ops = [op for op in self._ops if op in known]
        return new

    # ------------------------------------------------------------ what it has
    @property
    def graph(self) -> Graph | None:
        """The graph; None if the view is empty."""
        return self._graph

    @property
    def ops(self) -> list[Operation]:
        """The operations."""
        return self._ops

    @property
    def inputs(self) -> util.ListView:
        """What goes in."""
        return util.ListView(self._input_ts)

    @property
    def outputs(self) -> util.ListView:
        """What comes out."""
        return util.ListView(self._output_ts)

    @property
    def passthroughs(self) -> util.ListView:
        """What passes through."""
        return util.ListView(self._passthrough_ts)

    @property
    def connected_inputs(self) -> list[Tensor]:
        """The inputs that an operation takes."""
        return [t for t in self._input_ts if not self.is_passthrough(t)]

    @property
    def connected_outputs(self) -> list[Tensor]:
        """The outputs that an operation makes."""
        return [t for t in self._output_ts if not self.is_passthrough(t)]

    def is_passthrough(self, t: Tensor) -> bool:
        """Whether a tensor passes through."""
        return t in self._passthrough_ts

    def op(self, op_id: int) -> Operation:
        """The operation of a number."""
        return self._ops[op_id]

    def find_op_by_name(self, op_name: str) -> Operation:
        """The operation of a name.

        Raises:
            ValueError: there is none here.
        """
        for op in self._ops:
            if op.name == op_name:
                return op
        raise ValueError(f"{op_name} not in subgraph.")

    def input_index(self, t: Tensor) -> int:
        """Which input a tensor is.

        Raises:
            ValueError: it is none.
        """
        return _index(self._input_ts, t, "inputs")

    def output_index(self, t: Tensor) -> int:
        """Which output a tensor is.

        Raises:
            ValueError: it is none.
        """
        return _index(self._output_ts, t, "outputs")

    def consumers(self) -> list[Operation]:
        """The operations outside that take an output."""
        inside = frozenset(self._ops)
        return [op for op in util.get_consuming_ops(self._output_ts) if op not in inside]

    # ------------------------------------------------------------ Python
    def __bool__(self) -> bool:
        return self._graph is not None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *args: object) -> None:
        pass

    def __str__(self) -> str:
        if not self:
            return "SubGraphView: empty"
        lines = [f"SubGraphView (graphid={id(self._graph)}):"]
        for title, items in (
            ("ops", self._ops), ("inputs", self._input_ts), ("outputs", self._output_ts),
        ):  # fmt: skip
            lines.append(f"** {title}[{len(items)}]:" if items else f"** {title}: empty")
            lines += [f"  {i.name}{' *' if i in self._passthrough_ts else ''}" for i in items]
        return "\n".join(lines) + "\n"


def _picked(ts: list[Tensor], chosen: Iterable[Any]) -> list[Tensor]:
    found = []
    for item in chosen:
        i = item if isinstance(item, int) else ts.index(item)
        if not 0 <= i < len(ts):
            raise ValueError(f"Out of [0, {len(ts)}[ range: {i}")
        found.append(ts[i])
    return found


def _index(ts: list[Tensor], t: Tensor, of: str) -> int:
    if t not in ts:
        raise ValueError(f"Can't find {t.name} in {of} of subgraph.")
    return ts.index(t)


def make_view(*args: Any, **kwargs: Any) -> SubGraphView:
    """A view of what `select_ops_and_ts` finds; of a view, itself.

    Args:
        *args: as of `select_ops_and_ts`, or a view.
        **kwargs: as there.

    Raises:
        TypeError: these are not operations, tensors or names, or `graph` is no graph.
        ValueError: they are not of `graph`, or of several.
    """
    graph = kwargs.get("graph")
    if len(args) == 1 and isinstance(args[0], SubGraphView):
        view = args[0]
    else:
        view = SubGraphView(*select.select_ops_and_ts(*args, **kwargs))
    if graph is not None and view:
        if not isinstance(graph, Graph):
            raise TypeError(f"Expected a tf.Graph, got: {type(graph)}")
        if view.graph is not graph:
            raise ValueError("Graph mismatch.")
    return view


def make_view_from_scope(scope: str, graph: Graph) -> SubGraphView:
    """A view of the operations in a name scope."""
    return SubGraphView(select.get_name_scope_ops(graph, scope))
