"""`tf.RaggedTensor` with its operators, and which public functions take ragged tensors.

Functions of one tensor work on the flat values; those of two bring both to the same rows first; the
rest have counterparts of their own.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Final

from opdock.graph.nodes import dispatch
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.scopes import name_scope
from opdock.ops import arithmetic, compare, elementary
from opdock.ops.composed import division, ragged_math, ragged_rows, ragged_shapes
from opdock.ops.composed.ragged_align import aligned, tile
from opdock.ops.composed.ragged_convert import from_sparse, from_tensor, to_sparse, to_tensor
from opdock.ops.composed.ragged_math import map_flat_values
from opdock.ops.composed.ragged_slices import subscript
from opdock.ops.composed.ragged_spec import RaggedTensorSpec
from opdock.ops.composed.ragged_tensor import (
    RaggedTensor,
    convert_to_tensor_or_ragged_tensor,
    is_ragged,
    match_row_splits_dtypes,
)
from opdock.ops.composed.ragged_value import RaggedTensorValue

__all__ = ["RaggedTensor", "RaggedTensorSpec"]

UNARY: Final = frozenset((
    "abs", "acos", "acosh", "angle", "as_string", "asin", "asinh", "atan", "atanh", "cast",
    "ceil", "check_numerics", "clip_by_value", "conj", "cos", "cosh", "decode_base64",
    "decode_compressed", "digamma", "encode_base64", "erf", "erfc", "exp", "expm1", "floor",
    "identity", "imag", "invert", "is_finite", "is_inf", "is_nan", "lgamma", "log", "log1p",
    "log_sigmoid", "logical_not", "negative", "ones_like", "ones_like_v2", "real", "reciprocal",
    "regex_full_match", "regex_replace", "rint", "round", "rsqrt", "saturate_cast", "sigmoid",
    "sign", "sin", "sinh", "sqrt", "square", "string_length", "string_length_v2", "string_strip",
    "string_to_hash_bucket", "string_to_hash_bucket_fast", "string_to_hash_bucket_strong",
    "string_to_number", "substr", "substr_v2", "tan", "tanh", "unicode_script", "zeros_like",
    "zeros_like_v2",
))  # fmt: skip
"""Functions of one tensor, element by element."""

LISTS: Final = frozenset(("add_n", "string_join"))
"""Functions of a list of tensors, element by element."""

BINARY: Final = frozenset((
    "add", "atan2", "bitwise_and", "bitwise_or", "bitwise_xor", "complex", "div", "div_no_nan",
    "divide", "equal", "floordiv", "floormod", "greater", "greater_equal", "left_shift", "less",
    "less_equal", "logical_and", "logical_or", "logical_xor", "maximum", "minimum", "multiply",
    "not_equal", "pow", "realdiv", "right_shift", "squared_difference", "subtract", "truediv",
    "truncatediv", "truncatemod",
))  # fmt: skip
"""Functions of two tensors, element by element."""

OWN: Final = {
    **{
        name: getattr(ragged_rows, name)
        for name in (
            "batch_gather", "concat", "dynamic_partition", "gather", "gather_nd", "stack", "where",
        )
    },
    **{
        name: getattr(ragged_shapes, name)
        for name in ("expand_dims", "one_hot", "rank", "size", "squeeze")
    },
    **{
        f"reduce_{kind}": getattr(ragged_math, f"reduce_{kind}")
        for kind in ("all", "any", "join", "max", "mean", "min", "prod", "sum")
    },
    **{
        f"unsorted_segment_{kind}": getattr(ragged_math, f"segment_{kind}")
        for kind in ("max", "mean", "min", "prod", "sqrt_n", "sum")
    },
}  # fmt: skip
"""Functions with a counterpart."""


def call(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What a public function gives for ragged arguments; NotImplemented if it takes none."""
    name = function.__name__
    if name in UNARY or name in LISTS:
        return map_flat_values(function, *args, **kwargs)
    if name in BINARY:
        return _binary(function, args, kwargs)
    if name == "tile":
        return _tile(function, args, kwargs)
    own = OWN.get(name)
    return NotImplemented if own is None else own(*args, **kwargs)


def _tile(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    given = inspect.signature(function).bind(*args, **kwargs).arguments
    with name_scope(given.get("name"), "RaggedTile"):
        value = convert_to_tensor_or_ragged_tensor(given["input"])
        multiples = convert_to_tensor(given["multiples"], preferred_dtype=value.row_splits.dtype)
        return tile(value, multiples)


def _binary(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    bound = inspect.signature(function).bind(*args, **kwargs).arguments
    (x_name, x), (y_name, y), *rest = bound.items()
    x, y = (convert_to_tensor_or_ragged_tensor(v) if is_ragged(v) else v for v in (x, y))
    if not isinstance(x, RaggedTensor):
        x = _operand(x, x_name, y)
    if not isinstance(y, RaggedTensor):
        y = _operand(y, y_name, x)
    dtype = match_row_splits_dtypes(x, y)
    own = dict(rest)
    with name_scope(own.get("name"), function.__name__):
        for ragged, other in ((x, y), (y, x)):
            if isinstance(ragged, RaggedTensor) and _is_inner(ragged, other):
                values = [v.flat_values if v is ragged else v for v in (x, y)]
                return ragged.with_flat_values(function(*values))
        a, b, nested = aligned(x, y, dtype)
        found = function(a, b)
        return RaggedTensor.from_nested_row_splits(found, nested, validate=False)


def _operand(value: Any, name: str, other: RaggedTensor) -> Tensor:
    return convert_to_tensor(value, name=name, preferred_dtype=other.dtype)


def _is_inner(ragged: RaggedTensor, other: Any) -> bool:
    """Whether a dense operand reaches the dimensions inside of the ragged ones only."""
    if isinstance(other, RaggedTensor):
        return False
    own, given = ragged.flat_values.shape.ndims, other.shape.ndims
    if given == 0:
        return True
    return own is not None and given is not None and given < own


# ---------------------------------------------------------------- operators
def _install() -> None:
    """Gives ragged tensors Python's operators."""
    homes = (arithmetic, compare, elementary, division)

    def public(name: str) -> Callable[..., Any]:
        found: Callable[..., Any] = next(getattr(h, name) for h in homes if hasattr(h, name))
        return found

    def right(name: str) -> Callable[..., Any]:
        return lambda y, x: public(name)(x, y)

    for operator, name in (
        ("add", "add"), ("sub", "subtract"), ("mul", "multiply"), ("div", "div"),
        ("truediv", "truediv"), ("floordiv", "floordiv"), ("mod", "floormod"), ("pow", "pow"),
        ("and", "logical_and"), ("or", "logical_or"), ("xor", "logical_xor"),
    ):  # fmt: skip
        setattr(RaggedTensor, f"__{operator}__", public(name))
        setattr(RaggedTensor, f"__r{operator}__", right(name))
    for operator, name in (
        ("lt", "less"), ("le", "less_equal"), ("gt", "greater"), ("ge", "greater_equal"),
    ):  # fmt: skip
        setattr(RaggedTensor, f"__{operator}__", public(name))
    RaggedTensor.__getitem__ = subscript
    RaggedTensor.from_tensor = staticmethod(from_tensor)
    RaggedTensor.from_sparse = staticmethod(from_sparse)
    RaggedTensor.to_tensor, RaggedTensor.to_sparse = to_tensor, to_sparse
    for operator, name in (("neg", "negative"), ("abs", "abs"), ("invert", "logical_not")):
        setattr(RaggedTensor, f"__{operator}__", public(name))


_install()
dispatch.register(RaggedTensor, call)
dispatch.register(RaggedTensorValue, call)
