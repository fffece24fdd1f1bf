"""Ops on strings."""

from __future__ import annotations

from typing import Any

from opdock import shapes
from opdock.graph.nodes.operation import Tensor
from opdock.ops.registry import ShapeSig, define_op
from opdock.ops.support import common_shapes
from opdock.shapes import Shape

# `regex_full_match` is public as tf.strings.regex_full_match.
__all__ = ["string_join"]

string_join_op = define_op(
    "StringJoin", "inputs: N * string -> output: string", 'N: int >= 1, separator: string = ""'
).not_differentiable()


@string_join_op.shape
def _string_join_shape(sig: ShapeSig) -> Shape:
    # Scalars join with everything; all else must have one shape.
    if any(s is None for s in sig.shapes):
        return None
    shape: Shape = ()
    for other in sig.shapes:
        if other != ():
            shape = other if shape == () else shapes.merge(shape, other)
    return shape


regex_full_match_op = define_op(
    "RegexFullMatch", "input: string, pattern: string -> output: bool"
).not_differentiable()
static_regex_full_match_op = define_op(
    "StaticRegexFullMatch", "input: string -> output: bool", "pattern: string"
).not_differentiable()
regex_full_match_op.shape(common_shapes.unchanged)
static_regex_full_match_op.shape(common_shapes.unchanged)


def regex_full_match(input: Any, pattern: Any, name: str | None = None) -> Tensor:
    """Whether each string matches a regular expression from end to end.

    Args:
        input: a string tensor.
        pattern: the expression, a string or a scalar string tensor.
        name: a name for the operation.

    Returns:
        A bool tensor of the shape of `input`.

    Raises:
        tf.errors.InvalidArgumentError: at run time, when the expression is malformed.
    """
    if isinstance(pattern, (str, bytes)):
        return static_regex_full_match_op(input, pattern=pattern, name=name)  # type: ignore[no-any-return]
    return regex_full_match_op(input, pattern, name=name)  # type: ignore[no-any-return]


def string_join(inputs: Any, separator: str = "", name: str | None = None) -> Tensor:
    """Joins strings element by element.

    Args:
        inputs: a list of string tensors, all of one shape; scalars are repeated.
        separator: what to put between two strings.
        name: a name for the operation.

    Returns:
        A string tensor.
    """
    return string_join_op(inputs, separator=separator, name=name)  # type: ignore[no-any-return]
