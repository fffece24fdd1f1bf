"""What the steps of a stretch compute, as stages over places in memory.

Each step has stages of its own, so that equal steps are equal stages, for which one piece of code
serves. What only moves elements is no stage but a view, where that goes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from opdock import dtypes
from opdock.compiler.emit.turn_stages import Draft, Otherwise, Spot, passed
from opdock.compiler.emit.turn_views import Place, joined, multiplied, packed, viewed
from opdock.compiler.fuse.cluster_line import Composer, ending_of, is_sum, member_of, sum_of
from opdock.compiler.ir.block import Node, Value
from opdock.dtypes import DType
from opdock.kernels.expr.cluster import CLUSTER
from opdock.kernels.expr.lowering import Line
from opdock.kernels.expr.stretch import Stretch
from opdock.kernels.expr.turns import Item

__all__ = ["Stages", "is_small", "work"]

Shape = tuple[int, ...]
_FLOATS: Final = frozenset({dtypes.float32, dtypes.float64})
_ELEMENTS: Final = frozenset({
    *_FLOATS, dtypes.bool_, dtypes.int8, dtypes.int16, dtypes.int32, dtypes.int64, dtypes.uint8,
    dtypes.uint16, dtypes.uint32, dtypes.uint64,
})  # fmt: skip
"""Not those of 16 bits, of which a part of a sum would be rounded."""
_MOST_WALKED: Final = 1 << 12
"""Elements up to which what a step computes takes about as long as its call."""
_MOST_MULTIPLIED: Final = 1 << 15
"""The same for a product's multiplications; libraries have the better code for larger ones."""
_TOGETHER: Final = 8
"""Multiplications that take the time of one element elsewhere."""
_ADDENDS: Final = 8
"""Addends of one stage: of more, the first are added up while they are in the nearest cache."""


# ---------------------------------------------------------------- which steps
def is_small(node: Node) -> bool:
    """Whether a placed node may be a step of a stretch, as far as it alone tells."""
    if node.claimed or not all(map(_is_known, (*node.inputs, *node.values()))):
        return False
    if node.fused is not None and node.op != CLUSTER:
        return all(_is_computed(m) and is_small(m) for m in node.fused.members)
    # However many there are, a few addends are one stage.
    own = math.prod(_shape(Value(node, 0))) if is_sum(node) else work(node)
    return own <= _MOST_WALKED and _way(node) is not None


def _is_computed(node: Node) -> bool:
    return node.spec is not None and not node.stateful


def _is_known(value: Value) -> bool:
    dtype, shape = value.dtype.base_dtype, value.shape
    return dtype in _ELEMENTS and shape is not None and None not in shape and 0 not in shape


def work(node: Node) -> int:
    """About how many elements a small node computes, or as much as takes the same time."""
    if node.fused is not None and node.op != CLUSTER:
        return sum(map(work, node.fused.members))
    if (turned := multiplied(node)) is not None:
        (m, n), k = _shape(Value(node, 0)), _shape(node.inputs[0])[0 if turned[0] else 1]
        times = m * n * k
        if times > _MOST_MULTIPLIED:
            return _MOST_WALKED + 1
        return times // _TOGETHER + k * n * turned[1]
    if node.op == CLUSTER:
        return math.prod(node.attrs["shape"])
    walked = [math.prod(_shape(v)) for v in (*node.inputs, *node.values())]
    return sum(walked) if is_sum(node) else max(walked)


def _shape(value: Value) -> Shape:
    return tuple(n or 0 for n in value.shape or ())  # a small node's are known


def _way(node: Node) -> Callable[[Stages, Node], None] | None:
    """How the stages of a node are found; None if there is no way."""
    if node.op == CLUSTER:
        return Stages._cluster
    if node.is_alias:
        return Stages._alias
    if is_sum(node):
        return Stages._sum
    if member_of(node) is not None:
        return Stages._element
    floats = node.out_dtypes[0].base_dtype in _FLOATS if node.out_dtypes else False
    if floats and ending_of(node) is not None:
        return Stages._fold
    if floats and multiplied(node) is not None:
        return Stages._product
    if viewed(node) is not None:
        return Stages._view
    return Stages._join if joined(node, Value(node, 0)) is not None else None


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

    def add(self, node: Node) -> None:
        """Takes a node that is small.

        Raises:
            Otherwise: it does something that this cannot say.
        """
        if node.fused is not None and node.op != CLUSTER:
            self._same.update(zip(node.fused.inputs, node.inputs, strict=True))
            for member in node.fused.members:
                self.add(member)
            self._same.update(zip(node.values(), node.fused.results, strict=True))
            return
        way = _way(node)
        if way is None:
            raise Otherwise(f"{node.op} '{node.name}' is no step of a stretch")
        way(self, node)

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
        items = [tuple(map(self._item, bases)) for bases in (inputs, results, temporaries)]
        return Stretch(*items, stages), list(inputs)

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
                found.update((id(draft), draft) for draft, _ in drafts)
                continue
            left.append((base, True))
            left += [(v, False) for _, reads in reversed(drafts) for v in reversed(reads)]
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
        return self._made.get(base) or Item(base.dtype.base_dtype, _shape(base))

    def _more(self, node: Node, dtype: DType, shape: Shape) -> Value:
        """A place in memory that only the stages know."""
        base = Value(node, -1 - len(self._made))
        self._made[base] = Item(dtype, shape)
        return base

    def _copied(self, value: Value) -> Value:
        """A value in memory of its own."""
        dtype, shape = value.dtype.base_dtype, _shape(value)
        base = self._more(value.node, dtype, shape)
        self._draft(shape, passed(dtype), [self._place(value)], [Place.of(base, shape)])
        return base

    def _draft(
        self, shape: Shape, line: Line | None, reads: Sequence[Place], writes: Sequence[Place],
        folds: Sequence[str] = (),
    ) -> None:  # fmt: skip
        spots = [[Spot(("", p.base), p.strides, p.offset) for p in ps] for ps in (reads, writes)]
        draft = Draft(shape, line, *spots, tuple(folds))
        for base in dict.fromkeys(p.base for p in writes):
            self._drafts.setdefault(base, []).append((draft, [p.base for p in reads]))

    # ------------------------------------------------------------ ways
    def _alias(self, node: Node) -> None:
        self._same[Value(node, 0)] = node.inputs[0]

    def _cluster(self, node: Node) -> None:
        attrs = node.attrs
        self._line(node, attrs["shape"], attrs["line"], node.inputs, attrs["reduces"])

    def _element(self, node: Node) -> None:
        member = member_of(node)
        assert member is not None
        composer = Composer(self._resolved)
        line, inputs = composer.line([composer.add(node, member)])
        self._line(node, _shape(Value(node, 0)), line, inputs)

    def _fold(self, node: Node) -> None:
        ending = ending_of(node)
        assert ending is not None
        composer = Composer(self._resolved)
        data = node.inputs[0]
        step = (composer.read(None, data) if ending.member is None
                else composer.add(node, ending.member))  # fmt: skip
        line, inputs = composer.line([step])
        self._line(node, _shape(data), line, inputs, [ending.reduce])

    def _line(
        self, node: Node, shape: Shape, line: Line, inputs: Sequence[Value],
        reduces: Sequence[Any] = (),
    ) -> None:  # fmt: skip
        """Computes all results of a node by a line, the last of them folded."""
        values = node.values()
        self._made.update({v: Item(v.dtype.base_dtype, _shape(v)) for v in values})
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
        shape, dtype = _shape(Value(node, 0)), node.out_dtypes[0].base_dtype
        left = [self._place(v) for v in node.inputs]
        while len(left) > 1:
            taken, left = left[:_ADDENDS], left[_ADDENDS:]
            base = self._more(node, dtype, shape)
            left.insert(0, Place.of(base, shape))
            self._draft(shape, sum_of(len(taken), dtype), taken, left[:1])
        self._same[Value(node, 0)] = left[0].base

    def _product(self, node: Node) -> None:
        turned = multiplied(node)
        assert turned is not None
        a, b = (
            place.permuted((1, 0)) if turn else place
            for place, turn in zip(map(self._place, node.inputs), turned, strict=True)
        )
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
        self._made[result] = Item(dtype, _shape(result))
        for value, to in pieces:
            self._draft(to.shape, passed(dtype), [self._place(value)], [to])


def _kept(shape: Shape, axes: Sequence[int]) -> Shape:
    """The strides of what is folded along some axes."""
    left = iter(packed(tuple(n for i, n in enumerate(shape) if i not in axes)))
    return tuple(0 if i in axes else next(left) for i in range(len(shape)))
