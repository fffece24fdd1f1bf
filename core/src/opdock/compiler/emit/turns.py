"""Turns: a loop whose turns are small becomes one call for many turns, where a device can.

The node itself stays: the first turns, and whatever a backend's code leaves, run op by op. So this
asks nothing of a loop but that its condition is a matter of scalars, and that each turn computes by
what `turn_stages` can say, of its variables and of elements that it reads, what it leaves to the
next and what it writes to arrays and lists, each of which a turn touches once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from opdock.compiler.clean.bodies import elements_read
from opdock.compiler.emit.turn_rows import rows_apart
from opdock.compiler.emit.turn_stages import (
    Composition,
    Draft,
    Name,
    Otherwise,
    Unsaid,
    Wanted,
    item_of,
)
from opdock.compiler.emit.turn_sums import Sums, sums_of
from opdock.compiler.emit.turn_views import picked, read_by
from opdock.compiler.fuse.instead import declined
from opdock.compiler.ir.block import FEED, Block, Node, Value
from opdock.compiler.place.ladder import expand
from opdock.compiler.place.placer import Placer
from opdock.compiler.place.target import Target
from opdock.graph.nodes.traits import Moves
from opdock.kernels.expr.turns import TURNS, Item, Turns
from opdock.kernels.select.selection import LABEL_ATTR

__all__ = ["Array", "Undecided", "Whole", "whole"]

_MAX_STEPS: Final = 256
"""The most steps of a loop that is compiled: compile times grow with them."""
_LITTLE: Final = 1 << 12
"""Elements of a turn below which threads have nothing to share."""


@dataclass(frozen=True, slots=True)
class Array:
    """Where a loop finds an array.

    Attributes:
        variable: the loop's variable that is its handle.
        source: whose gradients the array is for, if it is that of another's gradients.
        reading: where the variable is a tensor of which a turn reads a row, which reading.
    """

    variable: int
    source: str | None = None
    reading: str | None = None


@dataclass(frozen=True, slots=True)
class Held:
    """Where a loop finds a value that turns only read: in a variable of the session's.

    Attributes:
        variable: the loop's variable that is its handle.
    """

    variable: int


@dataclass(frozen=True, slots=True)
class Whole:
    """A loop that can be run as one call, and where what it works on is found.

    Attributes:
        node: a node of the type `TURNS`, with its kernel.
        variables: for each of the turns' variables its index among the loop's, or by which of them
            it is held; or a constant.
        arrays, pops, pushes: the same for arrays and lists.
        sums: what is added up after many turns. What these push last is what it keeps.
        left: variables that become what others hold.
    """

    node: Node
    variables: tuple[Any, ...]
    arrays: tuple[Array, ...]
    pops: tuple[int, ...]
    pushes: tuple[int, ...]
    sums: Sums | None = None
    left: tuple[tuple[int, Held], ...] = ()

    @property
    def turns(self) -> Turns:
        """What a turn computes."""
        turns: Turns = self.node.attrs["turns"]
        return turns


@dataclass(frozen=True, slots=True)
class Undecided:
    """Why a loop is not one call as long as shapes are not known.

    Attributes:
        why: what is not known.
        read: which of its variables are arrays or lists that a turn reads.
    """

    why: str
    read: frozenset[int]


def whole(loop: Node, condition: Block, body: Block, placer: Placer) -> Whole | Undecided | str:
    """A loop as one call; the reason, if it is none.

    Args:
        loop: a placed node.
        condition, body: its functions, before their nodes are placed.
        placer: knows the devices, and which kernels gave up at run time.
    """
    target = loop.target
    if target is None or not target.is_open or TURNS not in target.index or not target.is_host:
        return "its device compiles no loops"
    plain = _whole(loop, condition, body, placer, None)
    if isinstance(plain, Undecided) or (isinstance(plain, Whole) and not _gains(plain.turns)):
        return plain
    sums = sums_of(condition, body)
    if sums is None:
        return plain
    later = _whole(loop, condition, body, placer, sums)
    if isinstance(later, Whole) and (isinstance(plain, str) or later.turns.apart):
        return later
    return plain


def _gains(turns: Turns) -> bool:
    """Whether a loop may gain by adding up later: threads share neither its rows nor its work."""
    return not turns.apart and turns.work >= _LITTLE


def _whole(
    loop: Node, condition: Block, body: Block, placer: Placer, sums: Sums | None
) -> Whole | Undecided | str:
    """A loop as one call, with sums that are added up later."""
    target = loop.target
    assert target is not None
    try:
        reader = _Reader(condition, body, target, placer, sums)
        turns = reader.turns()
    except Unsaid as e:
        return Undecided(str(e), frozenset(i for i, _ in elements_read(body)))
    except Otherwise as e:
        return str(e)
    node = Node(
        TURNS, loop.name, spec=None, attrs={"turns": turns}, inputs=[], out_dtypes=[],
        out_shapes=[], origin=loop.origin, requested=loop.requested, order=loop.id,
    )  # fmt: skip
    node.target = target
    refused = declined(node, placer)
    return refused or reader.found(node)


@dataclass(frozen=True, slots=True)
class _Touch:
    """What a turn does with one element.

    Attributes:
        place: the array, or which of the loop's variables is the list; of what is kept for sums,
            the value.
        item: the element's type and shape.
        index: of an array, where.
        value: what is written or pushed.
    """

    place: Any
    item: Item
    index: Value | None = None
    value: Value | None = None


class _Reader:
    """Reads what a turn does, node by node, and puts it together by shapes."""

    def __init__(
        self, condition: Block, body: Block, target: Target, placer: Placer, sums: Sums | None
    ) -> None:
        self._body, self._condition = body, condition
        self._target, self._placer = target, placer
        self._sums = sums
        self._later = frozenset[Node]() if sums is None else sums.nodes
        self._same: dict[Value, Value] = {}  # what a value is, where it is another one
        self._names: dict[Value, Name] = {}  # what is not computed, but found
        self._handles: dict[Value, Array] = {}
        self._touches: dict[str, dict[Any, _Touch]] = {"a": {}, "p": {}, "l": {}}  # by place
        self._lists: dict[int, Value] = {}  # by the variable, what a turn leaves of it
        self._held: dict[int, Value] = {}  # by the variable that is a handle, what is read there
        self._left: list[tuple[int, Held]] = []  # what a turn leaves of what it has only read
        self._variables: dict[Name, Item] = {}
        self._made = Composition(self._resolved, self._names, self._stays)

    def turns(self) -> Turns:
        """All that the loop does.

        Raises:
            Otherwise: it does something that this cannot say.
        """
        self._walk(self._condition)
        if any(self._touches.values()):
            raise Otherwise("its condition reads arrays")
        condition = self._made.alone(self._condition.fetches[:1], "vc")
        self._walk(self._body)
        for value in () if self._sums is None else self._sums.kept:
            self._name("l", None, _Touch(value, item_of(value), value=self._resolved(value)))
        indices = [t.index for t in self._touches["a"].values() if t.index is not None]
        places = self._made.alone(indices, "vpc")
        wanted = self._wanted()
        before, each = self._made.stages(wanted)
        if self._made.steps > _MAX_STEPS:
            raise Otherwise(f"it takes more than {_MAX_STEPS} steps")
        self._numbered([condition, places, *before, *each], wanted)
        kept = self._made.temporaries
        numbers = {name: f"v{i}" for i, name in enumerate(self._variables)}
        numbers |= {name: f"s{i}" for i, name in enumerate(kept)}

        def number(name: Name) -> str:
            return numbers.get(name, f"{name[0]}{name[1]}")

        arrays, pops, pushes = (tuple(t.item for t in ts.values()) for ts in self._touches.values())
        turns = Turns(
            tuple(self._variables.values()), arrays, pops, pushes, tuple(kept.values()),
            condition.part(number), places.part(number),
            tuple(d.stage(number) for d in before), tuple(d.stage(number) for d in each),
        )  # fmt: skip
        return replace(turns, apart=rows_apart(turns))

    def found(self, node: Node) -> Whole:
        """Where what the loop works on is found, with the node of its turns."""
        variables = tuple(map(_place, self._variables))
        arrays, pops, pushes = (tuple(t) for t in self._touches.values())
        own = tuple(place for place in pushes if isinstance(place, int))
        return Whole(node, variables, arrays, pops, own, self._sums, tuple(self._left))

    # ------------------------------------------------------------ nodes
    def _walk(self, block: Block) -> None:
        if block.cells:
            raise Otherwise("it works on variables")
        self._names.update({value: ("v", i) for i, value in enumerate(block.feeds)})
        for node in block.nodes:
            if node not in self._later:
                self._take(node)

    def _take(self, node: Node) -> None:
        if node.op == FEED or node.is_const:
            return
        if node.requested not in ("", self._target.name) or LABEL_ATTR in node.attrs:
            raise Otherwise(f"a device or a kernel was asked for '{node.name}'")
        if node.traits.moves is not None:
            self._touch(node, node.traits.moves)
        elif (handle := read_by(node)) is not None:
            self._read(node, handle)
        elif (row := picked(node)) is not None and self._reads_row(node, *row):
            return
        elif node.is_alias:
            self._same[Value(node, 0)] = self._resolved(node.inputs[0])
        else:
            self._add(node)

    def _add(self, node: Node) -> None:
        """Takes a node that computes something, or else the parts that its op decomposes into."""
        try:
            self._made.add(node)
        except Unsaid:
            raise
        except Otherwise:
            choice, _ = self._placer.decompose(node, self._target)
            if choice is None:
                raise
            parts, outputs = expand(self._body, node, choice)
            for part in parts:
                self._take(part)
            self._same.update((old, self._resolved(new)) for old, new in outputs.items())

    def _resolved(self, value: Value) -> Value:
        return self._same.get(value, value)

    def _read(self, node: Node, handle: Value) -> None:
        """Takes a node that reads what a handle holds; one that writes there is not taken."""
        variable = self._variable(self._resolved(handle))
        if not self._stays(variable):
            raise Otherwise("a variable is another one in each turn")
        self._held[variable] = Value(node, 0)
        self._names[Value(node, 0)] = ("h", variable)

    def _touch(self, node: Node, moves: Moves) -> None:
        inputs = [self._resolved(v) for v in node.inputs]
        first = Value(node, 0)
        match moves:
            case Moves.GRADIENT:
                array = Array(self._array(inputs[0]).variable, node.attrs["source"])
                self._handles[first] = array
                self._same[Value(node, 1)] = inputs[1]
            case Moves.READ:
                self._name("a", first, _Touch(self._array(inputs[0]), item_of(first), inputs[1]))
            case Moves.WRITE:
                array, value = self._array(inputs[0]), inputs[2]
                item = item_of(value, changes=True, adds=array.source is not None)
                self._name("a", None, _Touch(array, item, inputs[1], value))
                self._same[first] = inputs[3]
            case Moves.PUSH:
                place = self._list(inputs[0], first)
                self._name("l", None, _Touch(place, item_of(inputs[1]), value=inputs[1]))
            case Moves.POP:
                element = Value(node, 1)
                self._name("p", element, _Touch(self._list(inputs[0], first), item_of(element)))

    def _reads_row(self, node: Node, data: Value, index: Value) -> bool:
        """Takes a node that picks a row of a variable, if that is the same in all turns."""
        kind, variable = self._names.get(self._resolved(data), ("", 0))
        if kind != "v" or not self._stays(variable):
            return False
        touch = _Touch(Array(variable, reading=node.name), item_of(Value(node, 0)), index)
        self._name("a", Value(node, 0), touch)
        return True

    def _name(self, kind: str, value: Value | None, touch: _Touch) -> None:
        known = self._touches[kind]
        if touch.place in known:
            raise Otherwise("a turn takes two elements of one array")
        if value is not None:
            self._names[value] = (kind, len(known))
        known[touch.place] = touch

    def _array(self, handle: Value) -> Array:
        if handle in self._handles:
            return self._handles[handle]
        variable = self._variable(handle)
        if self._body.fetches[variable] != handle:
            raise Otherwise("an array is another one in each turn")
        return Array(variable)

    def _list(self, handle: Value, left: Value) -> int:
        variable = self._variable(handle)
        if self._body.fetches[variable] != left:
            raise Otherwise("a turn does more with a list than to take or add one element")
        self._lists[variable] = left
        return variable

    def _variable(self, handle: Value) -> int:
        kind, index = self._names.get(handle, ("", 0))
        if kind != "v":
            raise Otherwise("a list or an array is made in a turn")
        return int(index)

    # ------------------------------------------------------------ what a turn leaves
    def _wanted(self) -> list[Wanted]:
        """What is left to the next turn, written and pushed."""
        found = []
        feeds, fetches = self._body.feeds, map(self._resolved, self._body.fetches)
        later = () if self._sums is None else self._sums.variables
        for i, (before, value) in enumerate(zip(feeds, fetches, strict=True)):
            if i in later or value in (before, self._lists.get(i)):
                continue
            kind, held = self._names.get(value, ("", 0))
            if kind == "h":
                self._left.append((i, Held(held)))
                continue
            item = item_of(before, changes=True)
            if item_of(value, changes=True) != item:
                raise Otherwise("a variable's shape changes from turn to turn")
            found.append(Wanted(value, ("v", i), item))
        for kind, touches in self._touches.items():
            for i, touch in enumerate(touches.values()):
                if touch.value is not None:
                    found.append(Wanted(touch.value, (kind, i), touch.item))
        return found

    def _stays(self, variable: int) -> bool:
        return self._resolved(self._body.fetches[variable]) == self._body.feeds[variable]

    def _numbered(self, drafts: Sequence[Draft], wanted: Sequence[Wanted]) -> None:
        """Gives each variable that is read or written a number."""
        changing = {w.name: w.item for w in wanted if w.name[0] == "v"}
        for draft in drafts:
            for spot in (*draft.inputs, *draft.results):
                kind, what = name = spot.name
                if kind in ("v", "h", "c") and name not in self._variables:
                    if kind == "c":
                        value = what
                    else:
                        value = self._held[what] if kind == "h" else self._body.feeds[what]
                    self._variables[name] = changing.get(name) or item_of(value)


def _place(name: Name) -> Any:
    """Where a variable of this name is found: see `Whole.variables`."""
    kind, what = name
    if kind == "c":
        return what.node.const()
    return Held(what) if kind == "h" else what
