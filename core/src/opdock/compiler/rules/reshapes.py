"""Reshapes: chains of ops that move no element become one Reshape, or none."""

from __future__ import annotations

from typing import Final

from opdock.compiler.ir.block import Node, Value
from opdock.compiler.rules.rewrite import Rules, Site, constant, keeps, known
from opdock.compiler.rules.transposes import permutation
from opdock.dtypes import as_dtype

LIKE: Final = ("Reshape", "ExpandDims", "Squeeze")


def _chain(node: Node, site: Site) -> Value | None:
    """The first of two reshapes does not matter."""
    inner = site.source(node.inputs[0], *LIKE)
    if inner is None:
        return None
    source = inner.inputs[0]
    asked = node.op != "Reshape" or constant(node.inputs[1]) is not None
    if asked and keeps(node, source):
        return source
    if node.op == "Reshape":
        return site.make(
            "Reshape", [source, node.inputs[1]], dict(node.attrs), shape=node.out_shapes[0]
        )
    return reshape(node, site, source)


def reshape(node: Node, site: Site, source: Value) -> Value | None:
    """`source` in the shape of the node's output, where that is known."""
    shape = known(node.out_shapes[0])
    if shape is None or known(source.shape) is None or source.dtype._is_ref_dtype:
        return None
    if shape == source.shape:
        return source
    attrs = {"T": source.dtype.base_dtype, "Tshape": as_dtype("int32")}
    return site.make("Reshape", [source, site.ints(shape, "/shape")], attrs, shape=shape)


def _only_ones(node: Node, site: Site) -> Value | None:
    """A transpose that moves nothing but dimensions of size one."""
    source, perm = node.inputs[0], permutation(node)
    shape = known(source.shape)
    if perm is None or shape is None:
        return None
    moved = [axis for axis in perm if shape[axis] != 1]
    return reshape(node, site, source) if moved == sorted(moved) else None


def _everything(node: Node, site: Site) -> Value | None:
    """A strided slice that takes all elements in order: what `x[:, None]` makes."""
    source, strides = node.inputs[0], constant(node.inputs[3])
    shape, wanted = known(source.shape), known(node.out_shapes[0])
    if strides is None or shape is None or wanted is None or (strides != 1).any():
        return None
    # Steps of one take a run of each dimension; to leave none out they take them whole.
    return reshape(node, site, source) if _count(shape) == _count(wanted) != 0 else None


def _pack(node: Node, site: Site) -> Value | None:
    return reshape(node, site, node.inputs[0]) if len(node.inputs) == 1 else None


def _unpack(node: Node, site: Site) -> Value | None:
    return reshape(node, site, node.inputs[0]) if len(node.out_dtypes) == 1 else None


def _count(shape: tuple[int, ...]) -> int:
    count = 1
    for d in shape:
        count *= d
    return count


RULES: Final[Rules] = {
    "Reshape": (_chain,),
    "ExpandDims": (_chain,),
    "Squeeze": (_chain,),
    "Transpose": (_only_ones,),
    "StridedSlice": (_everything,),
    "Pack": (_pack,),
    "Unpack": (_unpack,),
}
