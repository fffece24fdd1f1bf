"""Turns: a loop whose turns are elementwise becomes one call for many turns, where a device can.

The node itself stays: the first turns, and whatever a backend's code leaves, run op by op. So this
asks nothing of a loop but that its condition is a matter of scalars, and that each turn computes
elementwise, of its variables and of elements that it reads, what it leaves to the next and what it
writes to arrays and lists, each of which a turn touches once.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from opdock.compiler.fuse.cluster_line import Composer, Member, computing, member_of
from opdock.compiler.fuse.instead import declined
from opdock.compiler.ir.block import FEED, Block, Node, Value
from opdock.compiler.place.placer import Placer
from opdock.graph.nodes.traits import Moves
from opdock.kernels.expr.lowering import Line
from opdock.kernels.expr.turns import TURNS, Item, Part, Turns
from opdock.kernels.select.selection import LABEL_ATTR

__all__ = ["Array", "Whole", "whole"]

_MAX_STEPS: Final = 256
"""The most steps of a loop that is compiled: compile times grow with them."""
_MOST_BYTES: Final = 1 << 16
"""The largest element: beyond that, calls cost little beside the work, which threads share."""


@dataclass(frozen=True, slots=True)
class Array:
    """Where a loop finds an array.

    Attributes:
        variable: the loop's variable that is its handle.
        source: whose gradients the array is for, if it is that of another's gradients.
    """

    variable: int
    source: str | None = None


@dataclass(frozen=True, slots=True)
class Whole:
    """A loop that can be run as one call, and where what it works on is found.

    Attributes:
        node: a node of the type `TURNS`, with its kernel.
        variables: for each of the turns' variables its index among the loop's; or a constant.
        arrays, pops, pushes: the same for arrays and lists.
    """

    node: Node
    variables: tuple[Any, ...]
    arrays: tuple[Array, ...]
    pops: tuple[int, ...]
    pushes: tuple[int, ...]

    @property
    def turns(self) -> Turns:
        """What a turn computes."""
        turns: Turns = self.node.attrs["turns"]
        return turns


def whole(loop: Node, condition: Block, body: Block, placer: Placer) -> Whole | str:
    """A loop as one call; the reason, if it is none.

    Args:
        loop: a placed node.
        condition, body: its functions, before their nodes are placed.
        placer: knows the devices, and which kernels gave up at run time.
    """
    target = loop.target
    if target is None or not target.is_open or TURNS not in target.index or not target.is_host:
        return "its device compiles no loops"
    try:
        reader = _Reader(condition, body, target.name)
        turns = reader.turns()
    except _Otherwise as e:
        return str(e)
    node = Node(
        TURNS, loop.name, spec=None, attrs={"turns": turns}, inputs=[], out_dtypes=[],
        out_shapes=[], origin=loop.origin, requested=loop.requested, order=loop.id,
    )  # fmt: skip
    node.target = target
    refused = declined(node, placer)
    return refused or reader.found(node)


class _Otherwise(Exception):
    """What there is in a loop that cannot be compiled."""


@dataclass(frozen=True, slots=True)
class _Touch:
    """What a turn does with one element.

    Attributes:
        place: the array, or which of the loop's variables is the list.
        item: the element's type and shape.
        index: of an array, where.
        value: what is written or pushed.
    """

    place: Any
    item: Item
    index: Value | None = None
    value: Value | None = None


_Name = tuple[str, Any]
"""A name of `Part` before it is known which variables there are: ("v", index among the loop's), or
("c", the value of a constant) for what becomes a variable too."""


class _Reader:
    """Reads what a turn does, node by node, and puts it together by shapes."""

    def __init__(self, condition: Block, body: Block, device: str) -> None:
        self._body, self._condition, self._device = body, condition, device
        self._order: dict[Node, int] = {}
        self._same: dict[Value, Value] = {}  # what a value is, where it is another one
        self._members: dict[Node, Member] = {}
        self._names: dict[Value, _Name] = {}  # what is not computed, but found
        self._handles: dict[Value, Array] = {}
        self._touches: dict[str, list[_Touch]] = {"a": [], "p": [], "l": []}
        self._lists: dict[int, Value] = {}  # by the variable, what a turn leaves of it
        self._variables: dict[_Name, Item] = {}
        self._steps = 0

    def turns(self) -> Turns:
        """All that the loop does.

        Raises:
            _Otherwise: it does something that this cannot say.
        """
        self._walk(self._condition)
        if any(self._touches.values()):
            raise _Otherwise("its condition reads arrays")
        condition = self._part((), [(self._condition.fetches[0], None)], "v")
        self._walk(self._body)
        indices = [(t.index, None) for t in self._touches["a"]]
        places = self._part((), indices, "vp")
        parts = [self._part(shape, found, "vap") for shape, found in self._results().items()]
        numbers = {name: f"v{i}" for i, name in enumerate(self._variables)}
        arrays, pops, pushes = (tuple(t.item for t in ts) for ts in self._touches.values())
        return Turns(
            tuple(self._variables.values()), arrays, pops, pushes,
            condition.numbered(numbers), places.numbered(numbers),
            tuple(part.numbered(numbers) for part in parts),
        )  # fmt: skip

    def found(self, node: Node) -> Whole:
        """Where what the loop works on is found, with the node of its turns."""
        variables = (
            key if kind == "v" else key.node.const() for kind, key in self._variables
        )  # fmt: skip
        places = (tuple(t.place for t in ts) for ts in self._touches.values())
        return Whole(node, tuple(variables), *places)

    # ------------------------------------------------------------ nodes
    def _walk(self, block: Block) -> None:
        if block.cells:
            raise _Otherwise("it works on variables")
        self._names.update({value: ("v", i) for i, value in enumerate(block.feeds)})
        for node in block.nodes:
            self._order[node] = len(self._order)
            if node.op == FEED or node.is_const:
                continue
            if node.requested not in ("", self._device) or LABEL_ATTR in node.attrs:
                raise _Otherwise(f"a device or a kernel was asked for '{node.name}'")
            if node.traits.moves is not None:
                self._touch(node, node.traits.moves)
            elif node.is_alias:
                self._same[Value(node, 0)] = self._resolved(node.inputs[0])
            else:
                member = None if node.stateful else member_of(node)
                if member is None:
                    raise _Otherwise(f"{node.op} '{node.name}' is not elementwise")
                self._members[node] = member

    def _resolved(self, value: Value) -> Value:
        return self._same.get(value, value)

    def _touch(self, node: Node, moves: Moves) -> None:
        inputs = [self._resolved(v) for v in node.inputs]
        first = Value(node, 0)
        match moves:
            case Moves.GRADIENT:
                array = Array(self._array(inputs[0]).variable, node.attrs["source"])
                self._handles[first] = array
                self._same[Value(node, 1)] = inputs[1]
            case Moves.READ:
                self._name("a", first, _Touch(self._array(inputs[0]), _item(first), inputs[1]))
            case Moves.WRITE:
                array, value = self._array(inputs[0]), inputs[2]
                item = _item(value, changes=True, adds=array.source is not None)
                self._name("a", None, _Touch(array, item, inputs[1], value))
                self._same[first] = inputs[3]
            case Moves.PUSH:
                place = self._list(inputs[0], first)
                self._name("l", None, _Touch(place, _item(inputs[1]), value=inputs[1]))
            case Moves.POP:
                element = Value(node, 1)
                self._name("p", element, _Touch(self._list(inputs[0], first), _item(element)))

    def _name(self, kind: str, value: Value | None, touch: _Touch) -> None:
        known = self._touches[kind]
        if any(t.place == touch.place for t in known):
            raise _Otherwise("a turn takes two elements of one array")
        if value is not None:
            self._names[value] = (kind, len(known))
        known.append(touch)

    def _array(self, handle: Value) -> Array:
        if handle in self._handles:
            return self._handles[handle]
        variable = self._variable(handle)
        if self._body.fetches[variable] != handle:
            raise _Otherwise("an array is another one in each turn")
        return Array(variable)

    def _list(self, handle: Value, left: Value) -> int:
        variable = self._variable(handle)
        if self._body.fetches[variable] != left:
            raise _Otherwise("a turn does more with a list than to take or add one element")
        self._lists[variable] = left
        return variable

    def _variable(self, handle: Value) -> int:
        kind, index = self._names.get(handle, ("", 0))
        if kind != "v":
            raise _Otherwise("a list or an array is made in a turn")
        return int(index)

    # ------------------------------------------------------------ what a turn leaves
    def _results(self) -> dict[tuple[int, ...], list[tuple[Value, _Name]]]:
        """What is computed, by its shape: each value, and what becomes of it."""
        found: dict[tuple[int, ...], list[tuple[Value, _Name]]] = {}
        feeds, fetches = self._body.feeds, map(self._resolved, self._body.fetches)
        for i, (before, value) in enumerate(zip(feeds, fetches, strict=True)):
            if value in (before, self._lists.get(i)):
                continue
            item = _item(before, changes=True)
            if _item(value, changes=True) != item:
                raise _Otherwise("a variable's shape changes from turn to turn")
            self._variables[("v", i)] = item
            found.setdefault(item.shape, []).append((value, ("v", i)))
        for kind, touches in self._touches.items():
            for i, touch in enumerate(touches):
                if touch.value is not None:
                    found.setdefault(touch.item.shape, []).append((touch.value, (kind, i)))
        return found

    def _part(
        self, shape: tuple[int, ...], wanted: Sequence[tuple[Any, _Name | None]], kinds: str
    ) -> _Draft:
        """The line of some values of one shape, whose inputs are of some kinds."""
        composer = Composer(self._resolved)
        values = [self._resolved(value) for value, _ in wanted]
        for node in self._needed(values, shape):
            composer.add(node, self._members[node])
        line, inputs = composer.line([composer.read(None, v) for v in values])
        self._steps += computing(line)
        if self._steps > _MAX_STEPS:
            raise _Otherwise(f"it takes more than {_MAX_STEPS} steps")
        names = [self._read(v, shape, kinds) for v in inputs]
        return _Draft(shape, line, names, [name for _, name in wanted if name is not None])

    def _needed(self, values: Sequence[Value], shape: tuple[int, ...]) -> list[Node]:
        """The nodes that compute values of one shape, in order."""
        found: set[Node] = set()
        left = [v.node for v in values]
        while left:
            node = left.pop()
            if node in self._members and node not in found:
                if node.out_shapes[0] not in ((), shape):
                    raise _Otherwise(f"{node.op} '{node.name}' has another shape")
                found.add(node)
                left.extend(self._resolved(v).node for v in node.inputs)
        return sorted(found, key=self._order.__getitem__)

    def _read(self, value: Value, shape: tuple[int, ...], kinds: str) -> _Name:
        """What an input of a line is."""
        item = _item(value)
        if item.shape not in ((), shape):
            raise _Otherwise(f"'{value.node.name}' is broadcast")
        name = self._names.get(value)
        if name is None:
            if not value.node.is_const:
                raise _Otherwise(f"'{value.node.name}' is not elementwise")
            name = ("c", value)
        elif name[0] not in kinds:
            raise _Otherwise("an index or the condition depends on what a turn reads")
        if name[0] in "vc":
            self._variables.setdefault(name, item)
        return name


@dataclass(frozen=True, slots=True)
class _Draft:
    """A `Part` whose variables have no numbers yet."""

    shape: tuple[int, ...]
    line: Line
    names: Sequence[_Name]
    results: Sequence[_Name]

    def numbered(self, numbers: Mapping[_Name, str]) -> Part:
        """The part, with the names of variables."""
        names, results = (
            tuple(numbers.get(name, f"{name[0]}{name[1]}") for name in found)
            for found in (self.names, self.results)
        )
        return Part(self.shape, self.line, names, results)


def _item(value: Value, changes: bool = False, adds: bool = False) -> Item:
    shape, dtype = value.shape, value.dtype
    known = None if shape is None else tuple(d for d in shape if d is not None)
    if known is None or known != shape or dtype._is_ref_dtype:
        raise _Otherwise(f"the shape of '{value.node.name}' is not known")
    if not 0 < math.prod(known) * dtype.size <= _MOST_BYTES:
        raise _Otherwise(f"'{value.node.name}' is empty or large")
    return Item(dtype, known, changes, adds)
