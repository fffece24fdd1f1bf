"""Layout: each device gets its images in the data format that it prefers, or has kernels for.

An op that changes its format would stand between transposes. They are not made: a value is noted
as the transpose of another one, ops that do not mind take that one and note their own results in
turn, and a transpose is made only where somebody needs the value as it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from opdock.compiler.ir.block import FEED, Block, Node, Value
from opdock.compiler.place import agnostic
from opdock.compiler.place.formats import (
    FROM_OTHER,
    LAYOUT,
    OTHER,
    PERM_ATTRS,
    Perm,
    attrs_in,
    followed_by,
    form_of,
    inverse,
    reordered,
    vector,
)
from opdock.compiler.place.placer import Placer
from opdock.compiler.place.target import Target
from opdock.compiler.rules.rewrite import constant
from opdock.compiler.rules.transposes import permutation
from opdock.dtypes import DType, as_dtype
from opdock.graph.nodes import registry
from opdock.graph.nodes.constant import const_op
from opdock.graph.nodes.traits import Formatted
from opdock.shapes import Shape

_INT: Final = as_dtype("int32")


def layout(block: Block, placer: Placer) -> None:
    """Changes data formats in place; placed blocks only.

    It acts where a device says that it prefers a format, and where placement had to put an op
    between transposes because its device has kernels for one format only.
    """
    block.looked_at("layout", len(block.nodes))
    wanted: dict[Target | None, str | None] = {
        node.target: _preference(node.target)
        for node in block.nodes
        if node.target is not None and isinstance(node.traits.layout, Formatted)
    }
    if any(wanted.values()) or any(LAYOUT in node.attrs for node in block.nodes):
        _Walk(block, placer, wanted).run()


def _preference(target: Target) -> str | None:
    return target.device.data_format


class _Walk:
    """One walk in executable order.

    Attributes:
        turned: for a value, the one of which it is the transpose, and the permutation.
    """

    def __init__(
        self, block: Block, placer: Placer, wanted: dict[Target | None, str | None]
    ) -> None:
        self.block = block
        self.placer = placer
        self.wanted = wanted
        self.turned: dict[Value, tuple[Value, Perm]] = {}
        self.mapping: dict[Value, Value] = {}
        self.controls: dict[Node, list[Node]] = {}
        self.fresh: list[Node] = []
        # Transposes that were made, by what they transpose, how and where.
        self.straight: dict[tuple[Value, Perm, Target | None], Value] = {}
        self.sideways: dict[tuple[Value, Perm, Target | None], Value] = {}

    def run(self) -> None:
        for node in self.block.nodes:
            node.inputs = [self.mapping.get(v, v) for v in node.inputs]
            if not self.visit(node):
                node.inputs = [self.as_it_was(v) for v in node.inputs]
                self.fresh.append(node)
        self.block.fetches = [self.as_it_was(self.mapping.get(v, v)) for v in self.block.fetches]
        self.block.nodes = self.fresh
        self.block.replace(self.mapping, self.controls)
        self.block.sweep()

    # ------------------------------------------------------------ one node
    def visit(self, node: Node) -> bool:
        """Whether the node was replaced, or is there no more."""
        if node.op == "Transpose":
            return self.transpose(node)
        if node.spec is None or node.target is None:
            return False
        if "_kernel" in node.attrs or any(d._is_ref_dtype for d in node.out_dtypes):
            return False
        form = form_of(node)
        if form is not None:
            return self.sensitive(node, form)
        lazy = [v for v in node.inputs if self.is_turned(v, node.target)]
        if not lazy:
            return False
        made = agnostic.turn(node, self.turned[lazy[0]][1], self)
        return made is not None

    def transpose(self, node: Node) -> bool:
        """A transpose of a transpose is one, or none; one for the sake of a format can wait."""
        perm = permutation(node)
        source = node.inputs[0]
        if perm is None or node.control or source.dtype._is_ref_dtype:
            return False
        known = self.turned.get(source)
        if known is None and LAYOUT not in node.attrs:
            return False
        base, first = known or self.origin(source)
        self.note(Value(node, 0), base, followed_by(first, perm))
        self.controls[node] = [base.node]
        return True

    def sensitive(self, node: Node, form: Formatted) -> bool:
        given = node.attrs["data_format"]
        wanted = self.wanted.get(node.target)
        follows = any(
            self.is_turned(node.inputs[i], node.target)
            and self.turned[node.inputs[i]][1] == FROM_OTHER[given]
            for i in form.data
        )
        leads = form.leads and wanted == OTHER[given]
        if LAYOUT in node.attrs or wanted == given or not (leads or follows):
            return False
        return self.change(node, form, given)

    def change(self, node: Node, form: Formatted, given: str) -> bool:
        """The node in the other data format."""
        wanted = OTHER[given]
        back = FROM_OTHER[given]
        target = node.target
        assert target is not None
        if not self.can_turn(target, node.inputs[form.data[0]].dtype, node):
            return False
        inputs = [
            self.sidewise(v, back, node) if i in form.data
            else self.const(reordered(vector(node, i) or (), FROM_OTHER[wanted]), v.dtype, node)
            if i in form.vectors else self.as_it_was(v)
            for i, v in enumerate(node.inputs)
        ]  # fmt: skip
        shapes = [
            _reorder(s, FROM_OTHER[wanted]) if i in form.results else s
            for i, s in enumerate(node.out_shapes)
        ]
        made = self.node(node, inputs, attrs_in(node, wanted), shapes)
        if made is None:
            return False
        made.why = f"{node.why}; {wanted}, which the device prefers"
        self.replace(node, made, dict.fromkeys(form.results, back))
        return True

    # ------------------------------------------------------------ what is known of values
    def is_turned(self, value: Value, target: Target | None) -> bool:
        """Whether a value is noted as the transpose of one on this device."""
        known = self.turned.get(value)
        return known is not None and known[0].node.target is target

    def note(self, value: Value, base: Value, perm: Perm) -> None:
        """Notes that `value` is the transpose of `base`."""
        if perm == tuple(range(len(perm))):
            self.mapping[value] = base
        else:
            self.turned[value] = (base, perm)

    def replace(self, node: Node, made: Node, perms: dict[int, Perm]) -> None:
        """Puts `made` in the place of a node, some of whose outputs are transposes of its own."""
        for value, new in zip(node.values(), made.values(), strict=True):
            if value.index in perms:
                self.note(value, new, perms[value.index])
                self.block.turned.add(new)
            else:
                self.mapping[value] = new
        self.controls[node] = [made]
        self.fresh.append(made)

    def origin(self, value: Value) -> tuple[Value, Perm]:
        """What a transpose of the user's transposes, and how; else the value, as it is."""
        source = value.node
        same = tuple(range(len(value.shape or ())))
        if source.op != "Transpose" or source.control or source.inputs[0].dtype._is_ref_dtype:
            return value, same
        perm = permutation(source)
        return (value, same) if perm is None else (source.inputs[0], perm)

    def as_it_was(self, value: Value) -> Value:
        """The value itself, transposed back if it is not there as it was."""
        known = self.turned.get(value)
        if known is None:
            return value
        home = value.node
        key = (*known, home.target)
        if key not in self.straight:
            self.straight[key] = self.make_transpose(*known, home)
        return self.straight[key]

    def sidewise(self, value: Value, perm: Perm, node: Node) -> Value:
        """The value whose transpose by `perm` is `value`."""
        base, first = self.turned.get(value) or self.origin(value)
        if first == perm:
            return base
        if value.dtype._is_ref_dtype:
            # It is read here and now; another node may have to read it again.
            return self.make_transpose(value, inverse(perm), node)
        key = (value, perm, node.target)
        if key not in self.sideways:
            array = constant(value)
            turned = inverse(perm)
            self.sideways[key] = (
                self.const(np.transpose(array, turned), value.dtype, node) if array is not None
                else self.make_transpose(self.as_it_was(value), turned, node)
            )  # fmt: skip
        return self.sideways[key]

    # ------------------------------------------------------------ making nodes
    def node(
        self, like: Node, inputs: list[Value], attrs: dict[str, Any], shapes: list[Shape],
        op: str = "", name: str = "",
    ) -> Node | None:  # fmt: skip
        """A placed node in the place of `like`; None when the device has no kernel for it."""
        kind = op or like.op
        made = Node(
            kind, name or like.name, spec=registry.get(kind) if op else like.spec, attrs=attrs,
            inputs=inputs, out_dtypes=like.out_dtypes if not op else [inputs[0].dtype.base_dtype],
            out_shapes=shapes, origin=like.origin, requested=like.requested, order=like.id,
        )  # fmt: skip
        assert like.target is not None
        choice, made.rejections = self.placer.climb(made, like.target)
        if choice is None or choice.kind == "decomposed":
            return None
        if choice.kind == "portable" and like.how == "native" and not op:
            return None  # The better kernel is worth more than the better format.
        made.kernel, made.how = choice.kernel, choice.kind
        made.target, made.why = like.target, like.why
        made.control = [] if op else list(like.control)
        return made

    def make_transpose(self, value: Value, perm: Sequence[int], like: Node) -> Value:
        """A transpose on the device of `like`."""
        indices = self.const(perm, _INT, like)
        attrs = {"T": value.dtype.base_dtype, **PERM_ATTRS}
        made = self.node(
            like, [value, indices], attrs, [_reorder(value.shape, tuple(perm))],
            "Transpose", f"{value.node.name}/layout",
        )  # fmt: skip
        assert made is not None  # `can_turn` asked before anything was turned.
        made.why = "between data formats"
        self.fresh.append(made)
        return Value(made, 0)

    def can_turn(self, target: Target, dtype: DType, like: Node) -> bool:
        """Whether the device itself transposes values of this type."""
        shape: Shape = (None,) * 4
        probe = Node(
            "Transpose", like.name, spec=registry.get("Transpose"),
            attrs={"T": dtype.base_dtype, **PERM_ATTRS}, inputs=[], out_dtypes=[dtype.base_dtype],
            out_shapes=[shape], order=like.id,
        )  # fmt: skip
        data = Node(
            FEED, like.name, spec=None, attrs={}, inputs=[],
            out_dtypes=[dtype.base_dtype], out_shapes=[shape],
        )  # fmt: skip
        perm = self.const(range(4), _INT, like)
        self.fresh.pop()
        probe.inputs = [Value(data, 0), perm]
        choice, _ = self.placer.climb(probe, target)
        return choice is not None and choice.kind != "decomposed"

    def const(self, value: Any, dtype: DType, like: Node) -> Value:
        """A constant on the device of a node."""
        array = np.asarray(list(value) if isinstance(value, range) else value, dtype.np)
        node = Node(
            const_op.name, f"{like.name}/layout/const", spec=const_op,
            attrs={"value": array, "dtype": dtype}, inputs=[], out_dtypes=[dtype],
            out_shapes=[array.shape], origin=like.origin, requested=like.requested, order=like.id,
        )  # fmt: skip
        node.target, node.how, node.why = like.target, "builtin", "between data formats"
        self.fresh.append(node)
        return Value(node, 0)


def _reorder(shape: Shape, perm: Perm) -> Shape:
    return None if shape is None else tuple(reordered(shape, perm))
