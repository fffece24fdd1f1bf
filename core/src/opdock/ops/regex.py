"""Regular expressions on strings, in RE2's syntax."""

from __future__ import annotations

from typing import Any

from opdock import shapes
from opdock.graph.nodes.dispatch import extensible
from opdock.graph.nodes.operation import Tensor
from opdock.ops.registry import ShapeSig, define_op
from opdock.ops.support import common_shapes
from opdock.shapes import Shape

# `regex_full_match` is public as tf.strings.regex_full_match.
__all__ = ["regex_replace"]

regex_full_match_op = define_op(
    "RegexFullMatch", "input: string, pattern: string -> output: bool"
).not_differentiable()
static_regex_full_match_op = define_op(
    "StaticRegexFullMatch", "input: string -> output: bool", "pattern: string"
).not_differentiable()
regex_replace_op = define_op(
    "RegexReplace", "input: string, pattern: string, rewrite: string -> output: string",
    "replace_global: bool = true",
).not_differentiable()  # fmt: skip
static_regex_replace_op = define_op(
    "StaticRegexReplace", "input: string -> output: string",
    "pattern: string, rewrite: string, replace_global: bool = true",
).not_differentiable()  # fmt: skip
static_regex_full_match_op.shape(common_shapes.unchanged)
static_regex_replace_op.shape(common_shapes.unchanged)


@regex_full_match_op.shape
@regex_replace_op.shape
def _regex_shape(sig: ShapeSig) -> Shape:
    for scalar in sig.shapes[1:]:
        shapes.with_rank(scalar, 0)
    return sig.shapes[0]


@extensible
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


@extensible
def regex_replace(
    input: Any, pattern: Any, rewrite: Any, replace_global: bool = True, name: str | None = None
) -> Tensor:
    r"""Replaces what matches a regular expression.

    Args:
        input: a string tensor.
        pattern: the expression, a string or a scalar string tensor.
        rewrite: what to put in its place, a string or a scalar string tensor: `\1` to `\9` stand
            for groups of the match, `\0` for all of it.
        replace_global: replace all matches, or the first one only.
        name: a name for the operation.

    Returns:
        A string tensor of the shape of `input`.

    Raises:
        tf.errors.InvalidArgumentError: at run time, when the expression is malformed.
    """
    if isinstance(pattern, (str, bytes)) and isinstance(rewrite, (str, bytes)):
        return static_regex_replace_op(  # type: ignore[no-any-return]
            input, pattern=pattern, rewrite=rewrite, replace_global=replace_global, name=name
        )
    return regex_replace_op(  # type: ignore[no-any-return]
        input, pattern, rewrite, replace_global=replace_global, name=name
    )
