"""What the steps of a stretch compute, as stages over places in memory.

Each step has stages of its own, so that equal steps are equal stages, for which one piece of code
serves. What only moves elements is no stage but a view, where that goes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple

from opdock import dtypes
from opdock.compiler.emit.turn_stages import Draft, Spot, passed
from opdock.compiler.emit.turn_views import Place, joined, multiplied, packed, viewed
from opdock.compiler.fuse.cluster_line import Member, is_sum, member_of, renamed, sum_of
from opdock.compiler.ir.block import Node, Value
from opdock.dtypes import DType
from opdock.kernels.expr.cluster import CLUSTER
from opdock.kernels.expr.lowering import Line
from opdock.kernels.expr.stretch import Stretch
from opdock.kernels.expr.turns import Item

__all__ = ["Small", "Stages", "Way", "small"]

Shape = tuple[int, ...]
PartialShape = tuple[int | None, ...] | None
Way = Callable[["Stages", Node], None]
_FLOATS: Final = frozenset({dtypes.float32, dtypes.float64})
_ELEMENTS: Final = frozenset(
    t._enum
    for d in (
        *_FLOATS, dtypes.bool_, dtypes.int8, dtypes.int16, dtypes.int32, dtypes.int64,
        dtypes.uint8, dtypes.uint16, dtypes.uint32, dtypes.uint64,
    )
    for t in (d, d._as_ref)
)  # fmt: skip
"""The numbers of types, and of references to them; not those of 16 bits, of which a part of a sum
would be rounded."""
_MOST_WALKED: Final = 1 << 12
"""Elements up to which what a step computes takes about as long as its call."""
_MOST_MULTIPLIED: Final = 1 << 16
"""The same for a product's multiplications; libraries have the better code for larger ones."""
_MOST_MOVED: Final = 1 << 10
"""The same for the elements that a product needs in another order."""
_TOGETHER: Final = 8
"""Multiplications that take the time of one element elsewhere."""
_ADDENDS: Final = 8
"""Addends of one stage: of more, the first are added up while they are in the nearest cache."""


# ---------------------------------------------------------------- which steps
class Small(NamedTuple):
    """A step of a stretch.

    Attributes:
        ways: how its stages are found: those of each node that it stands for.
        work: about how many elements it computes, or what takes as long.
    """

    ways: Sequence[tuple[Node, Way]]
    work: int


def small(node: Node) -> Small | None:
    """What a placed node is in a stretch; None if it is too large, or nothing that can be said."""
    if node.claimed or not _are_known(node):
        return None
    if node.fused is None or node.op == CLUSTER:
        found = _way(node)
        return None if found is None else Small(((node, found[0]),), found[1])
    members = [None if m.fused is not None else small(m) for m in node.fused.members]
    parts = [m for m in members if m is not None]
    if len(parts) < len(members):
        return None
    return Small([way for part in parts for way in part.ways], sum([p.work for p in parts]))


def _are_known(node: Node) -> bool:
    """Whether all that a node takes and gives is of numbers, and has elements."""
    # Every node is asked, so loops are plain.
    for before, index in node.inputs:
        shape = before.out_shapes[index]
        if shape is None or None in shape or 0 in shape:
            return False
        if before.out_dtypes[index]._enum not in _ELEMENTS:
            return False
    for dtype, shape in zip(node.out_dtypes, node.out_shapes, strict=True):
        if shape is None or None in shape or 0 in shape or dtype._enum not in _ELEMENTS:
            return False
    return bool(node.out_dtypes)


def _way(node: Node) -> tuple[Way, int] | None:
    """How the stages of a node are found, and how much they compute."""
    result = math.prod(_full(node.out_shapes[0]))
    if result > _MOST_WALKED:
        return None
    if node.op == CLUSTER:
        own = math.prod(node.attrs["shape"])
        return (Stages._cluster, own) if own <= _MOST_WALKED else None
    if (turned := multiplied(node)) is not None:
        return _product_way(node, *turned)
    if node.is_alias:
        return Stages._alias, 0
    if is_sum(node):
        # However many there are, a few addends are one stage.
        return Stages._sum, result * len(node.inputs)
    if member_of(node) is not None:
        return Stages._element, result
    if viewed(node) is not None:
        return Stages._view, result
    return (Stages._join, result) if joined(node, Value(node, 0)) is not None else None


def _product_way(node: Node, turned_a: bool, turned_b: bool) -> tuple[Way, int] | None:
    (m, n), k = _full(node.out_shapes[0]), _full(node.inputs[0].shape)[0 if turned_a else 1]
    times, moved = m * n * k, k * n * turned_b
    fits = times <= _MOST_MULTIPLIED and moved <= _MOST_MOVED
    floats = node.out_dtypes[0].base_dtype in _FLOATS
    return (Stages._product, times // _TOGETHER + moved) if fits and floats else None


def _full(shape: PartialShape) -> Shape:
    return shape  # type: ignore[return-value]  # a small node's are known


# ---------------------------------------------------------------- their stages
class Stages:
    """The stages of small nodes, which are added in executable order.

    A value with a negative index is one that only the stages know: they have some more in memory
    than nodes have results.
    """

    def __init__(self) -> None:
        self._same: dict[Value, Value] = {}
        self._views: dict[Value, Place] = {}
        self._made: dict[Value, Item] = {}
        self._drafts: dict[Value, list[tuple[Draft, list[Value]]]] = {}
        """By what they write, with what they read."""
        self._alone: dict[int, tuple[Member, Line, list[int]]] = {}
        """By the identity of a member, which equal ops share: it, and what `_alone` says of it."""

    def add(self, node: Node, ways: Sequence[tuple[Node, Way]]) -> None:
        """Takes a node that is small, by its ways."""
        if node.fused is None or node.op == CLUSTER:
            ways[0][1](self, node)
            return
        # Copies, whose values no other node has for its own: what they read has been replaced.
        values = dict(zip(node.fused.inputs, node.inputs, strict=True))
        for member, way in ways:
            copy = Node(
                member.op, member.name, spec=member.spec, attrs=member.attrs,
                inputs=[values.get(v, v) for v in member.inputs], out_dtypes=member.out_dtypes,
                out_shapes=member.out_shapes,
            )  # fmt: skip
            values.update(zip(member.values(), copy.values(), strict=True))
            way(self, copy)
        for value, result in zip(node.values(), node.fused.results, strict=True):
            self._same[value] = values[result]

    def finished(self, wanted: Sequence[Value]) -> tuple[Stretch, list[Value]]:
        """The whole stretch, and what it reads, in order.

        Args:
            wanted: what is left of it.
        """
        results: dict[Value, int] = {}
        for value in wanted:
            place = self._place(value)
            whole = place.is_all and place.shape == self._item(place.base).shape
            base = place.base
            if base not in self._made or base in results or not whole:
                base = self._copied(value)
            results[base] = len(results)
        order = self._in_order(results)
        temporaries: dict[Value, int] = {}
        inputs: dict[Value, int] = {}

        def number(name: tuple[str, Any]) -> str:
            base = name[1]
            if base in results:
                return f"y{results[base]}"
            kind, known = ("s", temporaries) if base in self._made else ("x", inputs)
            return f"{kind}{known.setdefault(base, len(known))}"

        stages = tuple(draft.stage(number) for draft in order)
        given, left, kept = (
            tuple(map(self._item, bases)) for bases in (inputs, results, temporaries)
        )
        return Stretch(given, left, kept, stages), list(inputs)

    def _in_order(self, results: Iterable[Value]) -> list[Draft]:
        """What the results take: each right before what needs it, as near as it goes."""
        found: dict[int, Draft] = {}
        done: set[Value] = set()
        left = [(base, False) for base in reversed(list(results))]
        while left:
            base, known = left.pop()
            if base in done:
                continue
            drafts = self._drafts.get(base, ())
            if known:
                done.add(base)
                for draft, _ in drafts:
                    found[id(draft)] = draft
                continue
            left.append((base, True))
            for _, reads in reversed(drafts):
                for read in reversed(reads):
                    left.append((read, False))
        return list(found.values())

    # ------------------------------------------------------------ values
    def _resolved(self, value: Value) -> Value:
        while value in self._same:
            value = self._same[value]
        return value

    def _place(self, value: Value) -> Place:
        value = self._resolved(value)
        found = self._views.get(value)
        return Place.of(value, self._item(value).shape) if found is None else found

    def _item(self, base: Value) -> Item:
        return self._made.get(base) or Item(base.dtype.base_dtype, _full(base.shape))

    def _more(self, node: Node, dtype: DType, shape: Shape) -> Value:
        """A place in memory that only the stages know."""
        base = Value(node, -1 - len(self._made))
        self._made[base] = Item(dtype, shape)
        return base

    def _copied(self, value: Value) -> Value:
        """A value in memory of its own."""
        dtype, shape = value.dtype.base_dtype, _full(value.shape)
        base = self._more(value.node, dtype, shape)
        self._draft(shape, passed(dtype), [self._place(value)], [Place.of(base, shape)])
        return base

    def _draft(
        self, shape: Shape, line: Line | None, reads: Sequence[Place], writes: Sequence[Place],
        folds: Sequence[str] = (),
    ) -> None:  # fmt: skip
        read, bases = [], []
        for place in reads:
            bases.append(place.base)
            read.append(Spot(("", place.base), place.strides, place.offset))
        written = [Spot(("", p.base), p.strides, p.offset) for p in writes]
        draft = Draft(shape, line, read, written, tuple(folds))
        for base in dict.fromkeys([p.base for p in writes]):
            self._drafts.setdefault(base, []).append((draft, bases))

    # ------------------------------------------------------------ ways
    def _alias(self, node: Node) -> None:
        self._same[Value(node, 0)] = node.inputs[0]

    def _cluster(self, node: Node) -> None:
        attrs = node.attrs
        self._line(node, attrs["shape"], attrs["line"], node.inputs, attrs["reduces"])

    def _element(self, node: Node) -> None:
        member = member_of(node)
        assert member is not None
        known = self._alone.get(id(member))
        if known is None:
            known = self._alone[id(member)] = member, *_alone(member)
        _, line, used = known
        self._line(node, _full(node.out_shapes[0]), line, [node.inputs[i] for i in used])

    def _line(
        self, node: Node, shape: Shape, line: Line, inputs: Sequence[Value],
        reduces: Sequence[Any] = (),
    ) -> None:  # fmt: skip
        """Computes all results of a node by a line, the last of them folded."""
        values = node.values()
        self._made.update({v: Item(v.dtype.base_dtype, _full(v.shape)) for v in values})
        whole = len(values) - len(reduces)
        writes = [Place.of(v, shape) for v in values[:whole]]
        writes += [
            Place(v, shape, _kept(shape, r.axes))
            for v, r in zip(values[whole:], reduces, strict=True)
        ]
        reads = [self._place(v).broadcast(shape) for v in inputs]
        self._draft(shape, line, reads, writes, [r.kind for r in reduces])

    def _sum(self, node: Node) -> None:
        """Adds up some at a time, in their order."""
        shape, dtype = _full(node.out_shapes[0]), node.out_dtypes[0].base_dtype
        left = [self._place(v) for v in node.inputs]
        while len(left) > 1:
            taken, left = left[:_ADDENDS], left[_ADDENDS:]
            base = self._more(node, dtype, shape) if left else Value(node, 0)
            self._made[base] = Item(dtype, shape)
            left.insert(0, Place.of(base, shape))
            self._draft(shape, sum_of(len(taken), dtype), taken, left[:1])

    def _product(self, node: Node) -> None:
        turned = multiplied(node)
        assert turned is not None
        a, b = map(self._place, node.inputs)
        a = a.permuted((1, 0)) if turned[0] else a
        b = b.permuted((1, 0)) if turned[1] else b
        result, dtype = Value(node, 0), node.out_dtypes[0].base_dtype
        (m, k), n = a.shape, b.shape[1]
        if b.strides[1] != 1 and n != 1:
            rows = Place.of(self._more(node, dtype, (k, n)), (k, n))
            self._draft((k, n), passed(dtype), [b], [rows])
            b = rows
        self._made[result] = Item(dtype, (m, n))
        self._draft((m, n, k), None, [a, b], [Place.of(result, (m, n))])

    def _view(self, node: Node) -> None:
        found = viewed(node)
        assert found is not None
        data, of = found
        place = self._place(node.inputs[data])
        views = [of(place, i) for i in range(len(node.out_dtypes))]
        if views[0] is None:  # its elements would have to move
            base = self._copied(node.inputs[data])
            views = [of(Place.of(base, place.shape), i) for i in range(len(views))]
        self._views.update((Value(node, i), p) for i, p in enumerate(views) if p is not None)

    def _join(self, node: Node) -> None:
        result = Value(node, 0)
        pieces = joined(node, result)
        assert pieces is not None
        dtype = node.out_dtypes[0].base_dtype
        self._made[result] = Item(dtype, _full(result.shape))
        for value, to in pieces:
            self._draft(to.shape, passed(dtype), [self._place(value)], [to])


def _alone(member: Member) -> tuple[Line, list[int]]:
    """The line of an op alone, and which of the op's inputs it reads.

    Constants are inputs as well: ops that differ in nothing else are one piece of code.
    """
    used = sorted(member.used)
    places = {str(i): f"x{place}" for place, i in enumerate(used)}
    return renamed(member.line, places), used


def _kept(shape: Shape, axes: Sequence[int]) -> Shape:
    """The strides of what is folded along some axes."""
    left = iter(packed(tuple(n for i, n in enumerate(shape) if i not in axes)))
    return tuple(0 if i in axes else next(left) for i in range(len(shape)))
