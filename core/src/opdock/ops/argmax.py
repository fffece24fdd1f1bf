"""Positions of the largest and smallest elements along one dimension."""

from __future__ import annotations

from typing import Any

from opdock import axes, dtypes, shapes
from opdock.docstrings import explained
from opdock.graph.nodes.dispatch import extensible
from opdock.graph.nodes.operation import Tensor
from opdock.ops.registry import OpSpec, ShapeSig, define_op
from opdock.ops.support import array_util
from opdock.shapes import Shape

__all__ = ["arg_max", "arg_min", "argmax", "argmin"]


def _define(name: str) -> OpSpec:
    return define_op(
        name, "input: T, dimension: Tidx -> output: output_type",
        "T: numbertype, Tidx: {int32, int64} = DT_INT32, output_type: {int32, int64} = DT_INT64",
    ).not_differentiable()  # fmt: skip


arg_max_op = _define("ArgMax")
arg_min_op = _define("ArgMin")


@arg_max_op.shape
@arg_min_op.shape
def _arg_shape(sig: ShapeSig) -> Shape:
    shapes.with_rank(sig.shapes[1], 0)
    source, axis = sig.shapes[0], array_util.const_int(sig, 1)
    if source is None:
        return None
    n = len(source)
    if n <= 1:
        return ()
    if axis is None:
        return (None,) * (n - 1)
    axis = axes.searched(axis, source, static=True)
    return source[:axis] + source[axis + 1 :]


_WORDS = {
    "input": "a tensor of a real numeric type.",
    "axis": "the dimension to search, from -rank to rank - 1; 0 by default.",
    "name": "a name for the operation.",
    "dimension": "the old name of `axis`.",
    "output_type": "`tf.int64` or `tf.int32`.",
}
"""What the functions here take."""


@extensible
@explained(
    _WORDS,
    returns="A tensor of type `output_type` without that dimension.",
    raises="ValueError: the axis is out of range, or both of its names are given.\n"
    "InvalidArgumentError: the dimension is empty (when it runs).",
)
def argmax(
    input: Any, axis: Any = None, name: str | None = None, dimension: Any = None,
    output_type: Any = dtypes.int64,
) -> Tensor:  # fmt: skip
    """The index of the largest element along a dimension; the first one among equals."""
    axis = array_util.renamed("axis", axis, "dimension", dimension)
    return _arg(arg_max_op, input, 0 if axis is None else axis, output_type, name)


@extensible
@explained(
    _WORDS,
    returns="A tensor of type `output_type` without that dimension.",
    raises="ValueError: the axis is out of range, or both of its names are given.\n"
    "InvalidArgumentError: the dimension is empty (when it runs).",
)
def argmin(
    input: Any, axis: Any = None, name: str | None = None, dimension: Any = None,
    output_type: Any = dtypes.int64,
) -> Tensor:  # fmt: skip
    """The index of the smallest element along a dimension; the first one among equals."""
    axis = array_util.renamed("axis", axis, "dimension", dimension)
    return _arg(arg_min_op, input, 0 if axis is None else axis, output_type, name)


@explained(_WORDS, dimension="the dimension to search.")
def arg_max(
    input: Any, dimension: Any, output_type: Any = dtypes.int64, name: str | None = None
) -> Tensor:
    """The old form of `argmax`."""
    return _arg(arg_max_op, input, dimension, output_type, name)


@explained(_WORDS, dimension="the dimension to search.")
def arg_min(
    input: Any, dimension: Any, output_type: Any = dtypes.int64, name: str | None = None
) -> Tensor:
    """The old form of `argmin`."""
    return _arg(arg_min_op, input, dimension, output_type, name)


def _arg(op: OpSpec, input: Any, axis: Any, output_type: Any, name: str | None) -> Tensor:
    return op(input, axis, output_type=output_type, name=name)  # type: ignore[no-any-return]
