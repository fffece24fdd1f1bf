"""Transposes: pairs cancel, chains become one, and products take them as a flag.

A product that takes its factor transposed adds up the same terms; in which order is the kernel's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from opdock.compiler.ir.block import Node, Value
from opdock.compiler.rules.rewrite import Rule, Rules, Site, constant
from opdock.dtypes import as_dtype


def _identity(node: Node, site: Site) -> Value | None:
    perm = permutation(node)
    return node.inputs[0] if perm == tuple(range(len(perm or ()))) else None


def _compose(node: Node, site: Site) -> Value | None:
    outer, inner = permutation(node), site.source(node.inputs[0], "Transpose")
    first = None if inner is None else permutation(inner)
    if inner is None or outer is None or first is None or len(first) != len(outer):
        return None
    both = tuple(first[a] for a in outer)
    source = inner.inputs[0]
    if both == tuple(range(len(both))):
        return source
    return transpose(site, source, both, "")


def permutation(node: Node) -> tuple[int, ...] | None:
    """The constant permutation of a transpose; None where it is not known, or is none."""
    perm = constant(node.inputs[1])
    axes = () if perm is None else tuple(int(a) for a in perm)
    return axes if perm is not None and sorted(axes) == list(range(len(axes))) else None


def transpose(site: Site, source: Value, perm: Sequence[int], suffix: str) -> Value:
    """A transpose by a constant permutation beside the node."""
    attrs = {"T": source.dtype.base_dtype, "Tperm": as_dtype("int32")}
    return site.make(
        "Transpose", [source, site.ints(perm, f"{suffix}/perm")], attrs,
        dtype=source.dtype.base_dtype, suffix=suffix,
    )  # fmt: skip


def _factors(flags: tuple[str, str], conjugates: bool) -> Rule:
    def rule(node: Node, site: Site) -> Value | None:
        # "adj" conjugates, which a transpose does not.
        if conjugates and node.out_dtypes[0].is_complex:
            return None
        inputs, attrs = list(node.inputs), dict(node.attrs)
        for i, flag in enumerate(flags):
            turned = site.source(inputs[i], "Transpose")
            if turned is not None and _swaps_last(permutation(turned)):
                inputs[i], attrs[flag] = turned.inputs[0], not attrs[flag]
        if inputs == list(node.inputs):
            return None
        return site.make(node.op, inputs, attrs, shape=node.out_shapes[0])

    return rule


def _swaps_last(perm: tuple[int, ...] | None) -> bool:
    if perm is None or len(perm) < 2:
        return False
    n = len(perm)
    return perm == (*range(n - 2), n - 1, n - 2)


_ADJOINT: Final = _factors(("adj_x", "adj_y"), conjugates=True)
RULES: Final[Rules] = {
    "Transpose": (_identity, _compose),
    "MatMul": (_factors(("transpose_a", "transpose_b"), conjugates=False),),
    "BatchMatMul": (_ADJOINT,),
    "BatchMatMulV2": (_ADJOINT,),
}
