"""`GraphView`: what a plugin's pass may ask of a program and change in it.

The verbs keep the compiler's invariants: values stand before those who take them, types and shapes
fit, placed programs stay placed. So whatever a pass does, the next one gets a program that runs.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from opdock import shapes
from opdock.compiler.ir.block import FEED, Block, Node, Value
from opdock.compiler.ir.state import cell_inputs
from opdock.compiler.place.target import parsed
from opdock.compiler.views.making import make_nodes
from opdock.compiler.views.node import NodeView, ValueView
from opdock.compiler.views.order import Order

if TYPE_CHECKING:
    from opdock.compiler.place.placer import Placer

__all__ = ["GraphView"]


class GraphView:
    """A program under construction: a step's, or a body's of a loop or a branch.

    Iterating gives the nodes in executable order, as they are when it begins.

    Attributes:
        stage: "before_place", "after_place" or "after_fuse".
        within: the name of the loop or condition whose body this is; empty for a step.
    """

    def __init__(self, block: Block, stage: str, maker: str, placer: Placer) -> None:
        self.stage = stage
        self.within = block.within
        self._block = block
        self._maker = maker
        self._placer = placer
        self._order = Order(block)
        self._names: set[str] | None = None
        self._changed = False

    # ------------------------------------------------------------ asking
    @property
    def nodes(self) -> tuple[NodeView, ...]:
        """All nodes in executable order: each after those whose values it takes."""
        return tuple(NodeView(n) for n in self._order.nodes())

    def __iter__(self) -> Iterator[NodeView]:
        return iter(self.nodes)

    def __len__(self) -> int:
        return len(self._order)

    def find(self, name: str) -> NodeView | None:
        """The first node of that name, or None."""
        return next((NodeView(n) for n in self._order.nodes() if n.name == name), None)

    @property
    def feeds(self) -> tuple[ValueView, ...]:
        """The values that come from outside, in order."""
        return tuple(ValueView(v) for v in self._block.feeds)

    @property
    def fetches(self) -> tuple[ValueView, ...]:
        """The values that the caller gets, in order."""
        return tuple(ValueView(v) for v in self._block.fetches)

    @property
    def targets(self) -> tuple[NodeView, ...]:
        """The nodes that run for their own sake."""
        return tuple(NodeView(n) for n in self._block.targets)

    def consumers(self, of: NodeView | ValueView) -> tuple[tuple[NodeView, int], ...]:
        """Who takes a value, or any value of a node: each node with the index of its input.

        The caller is none of them: see `fetches`.
        """
        values = of.outputs if isinstance(of, NodeView) else (of,)
        found = []
        for value in values:
            self._own(value)
            for user in self._order.users(value._value):
                taken = (i for i, v in enumerate(user.inputs) if v == value._value)
                found += [(NodeView(user), i) for i in taken]
        return tuple(found)

    # ------------------------------------------------------------ changing
    def insert(
        self,
        op: str,
        inputs: Sequence[Any],
        attrs: dict[str, Any] | None = None,
        *,
        name: str = "",
        device: str = "",
        before: NodeView | None = None,
    ) -> NodeView:
        """Makes a node. It runs if somebody takes its result, or with `before`.

        Args:
            op: a registered op type, TensorFlow's or a plugin's.
            inputs: one for each argument of the op, a list for a list argument: values of this
                graph, nodes that have one value, or what converts to a constant.
            attrs: attributes that the inputs do not determine and that have no default.
            name: the node's name, made unique; by default after its neighbour and the op.
            device: before placement the device to ask for, after it the one on which to run; by
                default what its neighbour asks for, or has: `before`, else its last input's node.
            before: a node that is to wait for the new one.

        Returns:
            The node.

        Raises:
            ValueError: there is no such op, the shapes do not fit, an input comes too late for
                `before`, or the device has no kernel for a node that has to be placed.
            TypeError: an input or attribute has the wrong type, or a node among the inputs has
                several values, or none.
        """
        inputs = _sole_values(inputs)
        given = [v for v in _flat(inputs) if isinstance(v, ValueView)]
        for value in given:
            self._own(value)
            if before is not None:
                self._comes_before(value._value.node, before)
        near = before._node if before is not None else given[-1]._value.node if given else None
        if before is not None:
            self._has(before)
        placer = None if self.stage == "before_place" else self._placer
        made = make_nodes(op, inputs, attrs or {}, name, device, near, self._maker, placer)
        for one in made:
            one.name = self._unique(one.name)
        node = made[-1]
        if before is not None:
            self._order.put_before(made, before._node)
            self._order.wait(before._node, node)
        else:
            self._order.put_after(made, [v._value.node for v in given])
        self._changed = True
        return NodeView(node)

    def replace_input(self, node: NodeView, index: int, value: ValueView | NodeView) -> None:
        """Makes a node take another value of the same type, whose shape fits.

        Raises:
            TypeError: the type is another, or `value` is a node that has several values, or none.
            ValueError: there is no such input, the shape does not fit, or the value is not there
                yet when the node runs.
        """
        self._has(node)
        taken: ValueView = _sole_value(value)
        self._own(taken)
        if not 0 <= index < len(node._node.inputs):
            raise ValueError(f"{node} has {len(node._node.inputs)} inputs, none is number {index}")
        old = node._node.inputs[index]
        _check_alike(old, taken._value, f"input {index} of {node}", _as_state(node._node, index))
        self._comes_before(taken._value.node, node)
        self._order.take(node._node, index, taken._value)
        node._node.infer()
        self._changed = True

    def replace(
        self, old: NodeView | ValueView, by: NodeView | ValueView | Sequence[ValueView]
    ) -> None:
        """Gives all who take a value, the caller among them, another one.

        For a node: each of its outputs is replaced, and those who wait for it wait for the nodes
        of the new values. The node is gone then, unless the new values are made from its own:
        what stands between the two keeps taking those.

        Args:
            old: a value, or a node.
            by: a value; for a node also one for each output, or a node with as many.

        Raises:
            TypeError: a type is another.
            ValueError: the numbers or shapes do not fit, or somebody would get a value that is not
                there yet.
        """
        if isinstance(by, NodeView):
            self._has(by)
        olds = old.outputs if isinstance(old, NodeView) else (old,)
        news = _values(by)
        if len(olds) != len(news):
            raise ValueError(f"{old} has {len(olds)} values, and {len(news)} are to replace them")
        if isinstance(old, NodeView):
            self._has(old)
            _refuse_feed(old, "replaced")
        kept = False
        for a, b in zip(olds, news, strict=True):
            self._own(a)
            self._own(b)
            kept = self._rewire(a._value, b._value) or kept
        if isinstance(old, NodeView) and not kept:
            instead = [by._node] if isinstance(by, NodeView) else [v._value.node for v in news]
            for waiter in self._order.waiters(old._node):
                for node in instead:
                    self._comes_before(node, NodeView(waiter))
            self._order.drop(old._node, instead)
        self._changed = True

    def remove(self, node: NodeView) -> None:
        """Drops a node that nobody takes a value of; who waited for it waits for what it did.

        Raises:
            ValueError: somebody takes one of its values: `replace` those first.
        """
        self._has(node)
        _refuse_feed(node, "removed")
        users = [str(user) for user, _ in self.consumers(node)]
        if any(v.node is node._node for v in self._block.fetches):
            users.append("the caller")
        if users:
            raise ValueError(f"{node} cannot be removed: {', '.join(users)} takes its value")
        before = [*(v.node for v in node._node.inputs), *node._node.control]
        self._order.drop(node._node, before)
        self._changed = True

    def annotate(self, node: NodeView, **attrs: Any) -> None:
        """Adds attributes that kernels find in `sig.attrs`; their names begin with "_".

        Raises:
            ValueError: a name is one that the op's definition may have.
        """
        wrong = [name for name in attrs if not name.startswith("_")]
        if wrong:
            raise ValueError(f"the name of a note on {node} must begin with _, got {wrong[0]!r}")
        node._node.attrs = {**node._node.attrs, **attrs}

    def request(self, node: NodeView, device: str) -> None:
        """Asks for a device for a node, as a device scope of the user's would.

        It may be one that placement takes on request only. What shares a device with the node, such
        as the other users of a variable, goes with it; where the node cannot be there, soft
        placement moves it or there is an error.

        Args:
            node: one for which nobody has asked for a device yet.
            device: the device's name, "/device:GPU:0" or in full.

        Raises:
            ValueError: placement is over, a device was asked for, or the name is no device's.
        """
        self._has(node)
        if self.stage != "before_place":
            raise ValueError(f"{node} has a device already: request it in the stage before_place")
        if node.requested:
            raise ValueError(f"{node} was asked to be on {node.requested} already")
        _refuse_feed(node, "placed")
        node._node.requested, node._node.asked_by = parsed(device).to_string(), self._maker

    def copy(self) -> GraphView:
        """The same program once more, to try something: it counts if the pass returns it.

        The nodes of one belong to the other under the same names, not as the same views.
        """
        self._settle()
        return GraphView(_copied(self._block), self.stage, self._maker, self._placer)

    # ------------------------------------------------------------ inside
    def _settle(self) -> None:
        """Writes the nodes back to the block, without those that nothing needs any more."""
        if self._changed:
            self._block.nodes = self._order.nodes()
            self._block.sweep()
            self._order = Order(self._block)

    def _rewire(self, old: Value, new: Value) -> bool:
        """Whether somebody still takes `old`, because `new` is made from it."""
        if old == new:
            raise ValueError(f"{ValueView(old)} is to be replaced by itself")
        between = self._order.between(old.node, new.node)
        kept = False
        for user in self._order.users(old):
            if user in between:
                kept = True
                continue
            self._comes_before(new.node, NodeView(user))
            for i, value in enumerate(user.inputs):
                if value == old:
                    what = f"input {i} of {NodeView(user)}"
                    _check_alike(old, new, what, _as_state(user, i))
                    self._order.take(user, i, new)
            user.infer()
        for i, value in enumerate(self._block.fetches):
            if value == old:
                _check_alike(old, new, f"fetch {i}", i in self._block.cells)
                self._block.fetches[i] = new
        return kept

    def _unique(self, name: str) -> str:
        """A name that no node has: state and experience go by names."""
        if self._names is None:
            self._names = {n.name for n in self._order.nodes()}
        made, count = name, 0
        while made in self._names:
            count += 1
            made = f"{name}_{count}"
        self._names.add(made)
        return made

    def _own(self, value: ValueView) -> None:
        if not isinstance(value, ValueView):
            raise TypeError(f"expected a value of the graph, got {value!r}")
        self._has(value.node)

    def _has(self, node: NodeView) -> None:
        if not isinstance(node, NodeView):
            raise TypeError(f"expected a node of the graph, got {node!r}")
        if node._node not in self._order:
            raise ValueError(f"{node} is not in the graph, or not any more")

    def _comes_before(self, first: Node, node: NodeView) -> None:
        if not self._order.precedes(first, node._node):
            raise ValueError(f"{NodeView(first)} comes too late for {node}")


def _flat(inputs: Iterable[Any]) -> Iterator[Any]:
    for item in inputs:
        if isinstance(item, (list, tuple)):
            yield from _flat(item)
        else:
            yield item


def _sole_values(inputs: Sequence[Any]) -> list[Any]:
    """The inputs, with the value of each node in the place of the node."""
    return [
        _sole_values(item) if isinstance(item, (list, tuple)) else _sole_value(item)
        for item in inputs
    ]


def _sole_value(item: Any) -> Any:
    """The one value of a node; whatever is no node stays as it is."""
    if not isinstance(item, NodeView):
        return item
    if len(item.outputs) != 1:
        names = ", ".join(map(str, item.outputs)) or "none"
        raise TypeError(f"{item} stands for no single value: its values are {names}")
    return item.outputs[0]


def _values(by: NodeView | ValueView | Sequence[ValueView]) -> Sequence[ValueView]:
    if isinstance(by, NodeView):
        return by.outputs
    return (by,) if isinstance(by, ValueView) else by


def _as_state(node: Node, index: int) -> bool:
    return index in cell_inputs(node)


def _check_alike(old: Value, new: Value, what: str, as_state: bool) -> None:
    same = old.dtype.base_dtype is new.dtype.base_dtype
    if as_state or new.dtype._is_ref_dtype:
        # A variable itself, or one that would be read later than the value was.
        same = old.dtype is new.dtype
    if not same:
        raise TypeError(f"{what} is {old.dtype.name}, {ValueView(new)} is {new.dtype.name}")
    if not shapes.is_compatible(old.shape, new.shape):
        raise ValueError(
            f"{what} has shape {shapes.text(old.shape)}, {ValueView(new)} has "
            f"{shapes.text(new.shape)}"
        )


def _refuse_feed(node: NodeView, what: str) -> None:
    if node.op == FEED:
        raise ValueError(f"{node} comes from outside and cannot be {what}")


def _copied(block: Block) -> Block:
    made = {node: copy.copy(node) for node in block.nodes}
    for node in made.values():
        node.inputs = [Value(made[v.node], v.index) for v in node.inputs]
        node.control = [made[n] for n in node.control]
        node.attrs, node.out_shapes = dict(node.attrs), list(node.out_shapes)
    copied = copy.copy(block)
    copied.nodes = list(made.values())
    copied.feeds = [Value(made[v.node], v.index) for v in block.feeds]
    copied.fetches = [Value(made[v.node], v.index) for v in block.fetches]
    copied.targets = [made[n] for n in block.targets]
    copied.folded, copied.missed = list(block.folded), list(block.missed)
    copied.visits = dict(block.visits)
    return copied
