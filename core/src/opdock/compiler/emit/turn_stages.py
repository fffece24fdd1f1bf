"""What a turn computes, in stages: each reads what turns find, and what earlier stages computed.

Elementwise nodes of one stage and shape are one line. What another shape, a fold or a product
reads of them goes through a temporary, of which ops that only move elements are views.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from opdock import dtypes, shapes
from opdock.compiler.emit.turn_views import Place, joined, multiplied, packed, viewed
from opdock.compiler.fuse.cluster_line import (
    Composer,
    Ending,
    Member,
    computing,
    ending_of,
    member_of,
)
from opdock.compiler.ir.block import Node, Value
from opdock.kernels.expr.lowering import INPUT, Line, Step
from opdock.kernels.expr.turns import Item, Part, Product, View

__all__ = ["Composition", "Draft", "Name", "Otherwise", "Unsaid", "Wanted", "item_of"]

Name = tuple[str, Any]
"""A name of `View` before it is known which there are: ("v", index among the loop's variables),
("h", such an index of a handle) for what is read there and ("c", the value of a constant), which
become variables too, ("s", what is kept) for what becomes a temporary."""
Shape = tuple[int, ...]
_FLOATS: Final = frozenset({dtypes.float32, dtypes.float64})
_MOST_BYTES: Final = 1 << 20
"""The largest element: beyond that, calls cost little beside the work, which threads share."""
_MOST_RESULT: Final = 1 << 18
"""Bytes of a product: a larger one leaves the cache before a turn has added it to another."""


class Otherwise(Exception):
    """What there is in a loop that cannot be compiled."""


class Unsaid(Otherwise):
    """The same, while shapes are not known."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a turn leaves: a value, and what becomes of it."""

    value: Value
    name: Name
    item: Item


@dataclass(frozen=True, slots=True)
class Spot:
    """A `View` whose name has no number yet."""

    name: Name
    strides: Shape
    offset: int = 0

    def numbered(self, number: Callable[[Name], str]) -> View:
        return View(number(self.name), self.strides, self.offset)


@dataclass(frozen=True, slots=True)
class Draft:
    """A `Part` or a `Product` whose names have no numbers yet; a product's line is None."""

    shape: Shape
    line: Line | None
    inputs: Sequence[Spot]
    results: Sequence[Spot]
    folds: tuple[str, ...] = ()
    stays: bool = False

    def part(self, number: Callable[[Name], str]) -> Part:
        """It as a part."""
        assert self.line is not None
        inputs, results = (
            tuple(spot.numbered(number) for spot in spots) for spots in (self.inputs, self.results)
        )
        return Part(self.shape, self.line, inputs, results, self.folds)

    def stage(self, number: Callable[[Name], str]) -> Part | Product:
        """It as what it is."""
        if self.line is not None:
            return self.part(number)
        m, n, k = self.shape
        a, b, result = (s.numbered(number) for s in (*self.inputs, *self.results))
        return Product((m, n, k), a, b, result, self.stays)


@dataclass(slots=True)
class _Group:
    """What is computed together: values, with what becomes of each; and folds."""

    results: list[tuple[Value, Spot]] = field(default_factory=list)
    folds: list[tuple[Node, Spot]] = field(default_factory=list)


class Composition:
    """The nodes of a loop's functions, put together.

    Args:
        resolved: what a value is, where it is another one.
        names: what is found, not computed; it may grow.
        stays: whether a variable, by its index, is the same in each turn.
    """

    def __init__(
        self, resolved: Callable[[Value], Value], names: Mapping[Value, Name],
        stays: Callable[[int], bool],
    ) -> None:  # fmt: skip
        self._resolved, self._names, self._stays = resolved, names, stays
        self._order: dict[Node, int] = {}
        self._stage: dict[Node, int] = {}
        self._members: dict[Node, Member] = {}
        self._folds: dict[Node, Ending] = {}
        self._products: dict[Node, tuple[Place, Place]] = {}
        self._pieces: dict[Node, list[tuple[Value, Place]]] = {}
        self._views: dict[Value, Place] = {}
        self._reads: dict[int, list[tuple[int, Shape, bool]]] = {}
        self._groups: dict[tuple[int, Shape], _Group] = {}
        self._drafts: dict[int, list[Draft]] = {}
        self._before: dict[Name, Draft] = {}
        self._kept: dict[Name, Item] = {}
        self.steps = 0
        """How many steps all lines take together."""

    # ------------------------------------------------------------ nodes
    def add(self, node: Node) -> None:
        """Takes a node, after those before it.

        Raises:
            Otherwise: it does something that this cannot say.
        """
        self._order[node] = len(self._order)
        if node.stateful:
            raise Otherwise(f"{node.op} '{node.name}' is not compiled in loops")
        member = member_of(node)
        if member is not None:
            self._members[node] = member
            shape = item_of(Value(node, 0)).shape
            used = [v for i, v in enumerate(node.inputs) if i in member.used]
            self._at(node, shape, used)
        elif (ending := ending_of(node)) is not None and node.out_dtypes[0] in _FLOATS:
            self._folds[node] = ending
            item_of(Value(node, 0))
            self._at(node, item_of(node.inputs[0]).shape, node.inputs[:1])
        elif (turned := multiplied(node)) is not None and node.out_dtypes[0] in _FLOATS:
            self._product(node, *turned)
        elif not self._moves(node):
            known = all(shapes.is_fully_defined(v.shape) for v in node.inputs)
            why = f"{node.op} '{node.name}' is not compiled in loops"
            raise Otherwise(why) if known else Unsaid(why)

    def _at(self, node: Node, shape: Shape, used: Iterable[Value]) -> None:
        stage = max((self._seen(v, shape) for v in used), default=0)
        self._stage[node] = stage
        for value in used:
            self._reading(value, stage, shape)

    def _product(self, node: Node, *turned: bool) -> None:
        a, b = (
            place.permuted((1, 0)) if turn else place
            for place, turn in zip(map(self._place, node.inputs), turned, strict=True)
        )
        m, n = a.shape[0], b.shape[1]
        if m * n * node.out_dtypes[0].size > _MOST_RESULT:
            raise Otherwise(f"the result of '{node.name}' is large: a library adds it up sooner")
        stage = max(map(self._ready, node.inputs))
        if b.strides[1] != 1 and n != 1 and not self._constant(b.base):
            stage += 1
        for value in node.inputs:
            self._reading(value, stage, ())
        self._products[node], self._stage[node] = (a, b), stage

    def _moves(self, node: Node) -> bool:
        """Takes a node that only moves elements."""
        first = Value(node, 0)
        if (view := viewed(node)) is not None:
            data, of = view
            place = self._place(self._resolved(node.inputs[data]))
            found = [of(place, i) for i in range(len(node.out_dtypes))]
            if found[0] is not None:
                self._views.update(
                    (Value(node, i), p) for i, p in enumerate(found) if p is not None
                )  # fmt: skip
                return True
            pieces = [(node.inputs[data], Place.of(first, place.shape))]
        elif (put := joined(node, first)) is not None:
            pieces = put
        else:
            return False
        item_of(first)
        self._pieces[node] = [(self._resolved(v), p) for v, p in pieces]
        self._stage[node] = max(self._seen(v, item_of(v).shape) for v, _ in self._pieces[node])
        for value, place in self._pieces[node]:
            self._reading(value, self._seen(value, place.shape), place.shape)
        return True

    # ------------------------------------------------------------ values
    def _place(self, value: Value) -> Place:
        """Where a value lies, or will."""
        value = self._resolved(value)
        found = self._views.get(value)
        return Place.of(value, item_of(value).shape) if found is None else found

    def _constant(self, base: Value) -> bool:
        kind, index = self._names.get(base, ("", 0))
        return base.node.is_const or kind == "h" or (kind == "v" and self._stays(index))

    def _ready(self, value: Value) -> int:
        """The first stage that finds a value in memory."""
        node = self._place(value).base.node
        return self._stage[node] + 1 if node in self._stage else 0

    def _seen(self, value: Value, shape: Shape) -> int:
        """The first stage whose line of a shape may take a value: it may compute it itself."""
        value = self._resolved(value)
        node = value.node
        if node in self._members and node.out_shapes[0] in ((), shape):
            return self._stage[node]
        return self._ready(value)

    def _reading(self, value: Value, stage: int, shape: Shape) -> None:
        """Notes who reads a variable in memory."""
        place = self._place(value)
        kind, index = self._names.get(place.base, ("", 0))
        if kind == "v":
            whole = place.is_all and place.shape == shape
            self._reads.setdefault(index, []).append((stage, shape, whole))

    # ------------------------------------------------------------ what comes of it
    def alone(self, values: Sequence[Value], kinds: str) -> Draft:
        """Some numbers of which only those of some kinds are read."""
        spots = [Spot(("", 0), ()) for _ in values]
        found = _Group(list(zip(map(self._resolved, values), spots, strict=True)))
        draft = self._draft((), found, None)
        if any(spot.name[0] not in kinds for spot in draft.inputs):
            raise Otherwise("an index or the condition depends on what a turn reads")
        return draft

    def stages(self, wanted: Sequence[Wanted]) -> tuple[list[Draft], list[Draft]]:
        """What is computed once, and in each turn, in order."""
        wanted = [Wanted(self._resolved(w.value), w.name, w.item) for w in wanted]
        places = [self._seen(w.value, w.item.shape) for w in wanted]
        for w, stage in zip(wanted, places, strict=True):
            self._reading(w.value, stage, w.item.shape)
        last = max([-1, *self._stage.values(), *places]) + 1
        for w, stage in zip(wanted, places, strict=True):
            result, shape = Spot(w.name, packed(w.item.shape)), w.item.shape
            if self._overtaken(w, stage):
                kept: Name = ("s", ("next", w.name))
                self._kept[kept] = Item(w.item.dtype, shape)
                self._group(stage, shape).results.append((w.value, Spot(kept, result.strides)))
                self._drafts.setdefault(last, []).append(_copy(w, kept, result))
            else:
                self._group(stage, shape).results.append((w.value, result))
        for stage in range(last, -1, -1):
            for (at, shape), group in list(self._groups.items()):
                if at == stage:
                    self._drafts.setdefault(stage, []).append(self._draft(shape, group, stage))
        each = [draft for _, drafts in sorted(self._drafts.items()) for draft in drafts]
        return list(self._before.values()), each

    @property
    def temporaries(self) -> Mapping[Name, Item]:
        """What is kept for later stages."""
        return self._kept

    def _overtaken(self, wanted: Wanted, stage: int) -> bool:
        """Whether a variable is still read when its next value is there."""
        kind, index = wanted.name
        if kind != "v" or not wanted.item.shape:
            return False
        return not all(
            at < stage or (at == stage and shape == wanted.item.shape and whole)
            for at, shape, whole in self._reads.get(index, ())
        )

    def _group(self, stage: int, shape: Shape) -> _Group:
        return self._groups.setdefault((stage, shape), _Group())

    def _draft(self, shape: Shape, group: _Group, stage: int | None) -> Draft:
        """The line of a group; without a stage it computes all that it needs."""
        composer = Composer(self._resolved)
        operands = [self._resolved(node.inputs[0]) for node, _ in group.folds]
        for node in self._inside([*(v for v, _ in group.results), *operands], shape, stage):
            composer.add(node, self._members[node])
        steps = [composer.read(None, value) for value, _ in group.results]
        for (node, _), operand in zip(group.folds, operands, strict=True):
            member = self._folds[node].member
            steps.append(composer.read(None, operand) if member is None
                         else composer.add(node, member))  # fmt: skip
        line, inputs = composer.line(steps)
        self.steps += computing(line)
        folds = tuple(self._folds[node].reduce.kind for node, _ in group.folds)
        spots = [spot for _, spot in (*group.results, *group.folds)]
        return Draft(shape, line, [self._read(v, shape) for v in inputs], spots, folds)

    def _inside(self, values: Sequence[Value], shape: Shape, stage: int | None) -> list[Node]:
        """The nodes that a line of a shape and a stage computes, in order."""
        found: set[Node] = set()
        left = [v.node for v in values]
        while left:
            node = left.pop()
            if node not in self._members or node in found:
                continue
            if node.out_shapes[0] in ((), shape) and stage in (None, self._stage[node]):
                found.add(node)
                left.extend(self._resolved(v).node for v in node.inputs)
        return sorted(found, key=self._order.__getitem__)

    def _read(self, value: Value, shape: Shape) -> Spot:
        return self._spot(self._place(value).broadcast(shape))

    def _spot(self, place: Place) -> Spot:
        """Where what lies at a place is found, which is computed before."""
        name = self._names.get(place.base)
        if name is None:
            name = ("c" if place.base.node.is_const else "s", place.base)
        if name[0] == "s" and name not in self._kept:
            self._keep(name, place.base)
        return Spot(name, place.strides, place.offset)

    def _keep(self, name: Name, base: Value) -> None:
        """Has a value computed that is read in memory."""
        self._kept[name] = item = item_of(base)
        node, whole = base.node, Spot(name, packed(item.shape))
        if node in self._members:
            self._group(self._stage[node], item.shape).results.append((base, whole))
        elif node in self._folds:
            operand = item_of(node.inputs[0]).shape
            strides = _folded(operand, self._folds[node])
            spot = Spot(name, strides)
            self._group(self._stage[node], operand).folds.append((node, spot))
        elif node in self._products:
            self._multiply(node, whole)
        elif node not in self._pieces:
            raise Otherwise(f"{node.op} '{node.name}' is not compiled in loops")
        else:
            for value, to in self._pieces[node]:
                spot = Spot(name, to.strides, to.offset)
                stage = self._seen(value, to.shape)
                self._group(stage, to.shape).results.append((value, spot))

    def _multiply(self, node: Node, result: Spot) -> None:
        a, b = self._products[node]
        (m, k), n, stage = a.shape, b.shape[1], self._stage[node]
        right = self._spot(b)
        if b.strides[1] != 1 and n != 1:
            kept: Name = ("s", ("rows", b))
            dtype = node.out_dtypes[0]
            if kept not in self._kept:
                self._kept[kept] = Item(dtype, (k, n))
            rows = Spot(kept, packed((k, n)))
            draft = Draft((k, n), _passed(dtype), [right], [rows])
            if self._constant(b.base):
                self._before[kept] = draft
            else:
                self._drafts.setdefault(stage - 1, []).append(draft)
            right = rows
        stays = self._constant(b.base)
        draft = Draft((m, n, k), None, [self._spot(a), right], [result], stays=stays)
        self._drafts.setdefault(stage, []).append(draft)


def _passed(dtype: dtypes.DType) -> Line:
    """The line that hands on what it reads."""
    return Line((Step(INPUT, (), dtype, "x0"),), (0,))


def _copy(wanted: Wanted, kept: Name, result: Spot) -> Draft:
    source = Spot(kept, result.strides)
    return Draft(wanted.item.shape, _passed(wanted.item.dtype), [source], [result])


def _folded(shape: Shape, ending: Ending) -> Shape:
    """The strides of a fold's result along what is folded."""
    axes = ending.reduce.axes
    left = iter(packed(tuple(n for i, n in enumerate(shape) if i not in axes)))
    return tuple(0 if i in axes else next(left) for i in range(len(shape)))


def item_of(value: Value, changes: bool = False, adds: bool = False) -> Item:
    """What a value is as one piece.

    Raises:
        Unsaid: its shape is not known.
        Otherwise: it is empty or large, or a reference.
    """
    shape, dtype = value.shape, value.dtype
    known = None if shape is None else tuple(d for d in shape if d is not None)
    if dtype._is_ref_dtype:
        raise Otherwise(f"'{value.node.name}' is a reference")
    if known is None or known != shape:
        raise Unsaid(f"the shape of '{value.node.name}' is not known")
    if not 0 < math.prod(known) * dtype.size <= _MOST_BYTES:
        raise Otherwise(f"'{value.node.name}' is empty or large")
    return Item(dtype, known, changes, adds)
