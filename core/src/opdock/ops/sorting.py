"""Order: the largest elements, sorting, and searching in sorted rows."""

from __future__ import annotations

from typing import Any

from opdock import dtypes, shapes
from opdock.graph.nodes.constant_value import constant_value
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.dispatch import extensible
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.nodes.scopes import name_scope
from opdock.ops.array import expand_dims, rank, reshape, shape
from opdock.ops.registry import ShapeSig, define_op, get
from opdock.ops.support import array_util
from opdock.shapes import Shape

__all__ = ["argsort", "searchsorted", "sort"]

_DIRECTIONS = ("ASCENDING", "DESCENDING")


# ---------------------------------------------------------------- TopK, TopKV2
top_k_op = define_op(
    "TopK", "input: T -> values: T, indices: int32",
    "k: int >= 0, sorted: bool = true, T: realnumbertype",
)  # fmt: skip
top_k_v2_op = define_op(
    "TopKV2", "input: T, k: int32 -> values: T, indices: int32",
    "sorted: bool = true, T: realnumbertype",
)  # fmt: skip


nth_element_op = define_op(
    "NthElement", "input: T, n: int32 -> values: T", "reverse: bool = false, T: realnumbertype"
)


@nth_element_op.shape
def _nth_element_shape(sig: ShapeSig) -> Shape:
    source = shapes.with_rank_at_least(sig.shapes[0], 1)
    array_util.scalar_shape(sig, 1)
    n = array_util.const_int(sig, 1)
    if n is not None and n < 0:
        raise ValueError(
            f"Dimension size, given by scalar input 1, must be non-negative but is {n}"
        )
    if source is None:
        return None
    if n is not None and source[-1] is not None and source[-1] <= n:
        raise ValueError(f"Input must have last dimension > n = {n} but is {source[-1]}")
    return source[:-1]


@nth_element_op.gradient
def _nth_element_grad(op: Operation, grad: Any) -> list[Any]:
    """All elements that equal the one found share its gradient."""
    source = op.inputs[0]
    equal = get("Cast")(get("Equal")(expand_dims(op.outputs[0], -1), source), DstT=grad.dtype)
    count = get("Sum")(equal, -1, keep_dims=True)
    return [equal / count * expand_dims(grad, -1), None]


@top_k_op.shape
def _top_k_shape(sig: ShapeSig) -> list[Shape]:
    return _best_k(sig.shapes[0], sig.attrs["k"])


@top_k_v2_op.shape
def _top_k_v2_shape(sig: ShapeSig) -> list[Shape]:
    array_util.scalar_shape(sig, 1)
    values = array_util.const_ints(sig, 1)
    return _best_k(sig.shapes[0], None if values is None else values[0])


def _best_k(source: Shape, k: int | None) -> list[Shape]:
    shapes.with_rank_at_least(source, 1)
    if k is not None and k < 0:
        raise ValueError(f"Need k >= 0, got {k}")
    if source is None:
        return [None, None]
    last = source[-1]
    if last is not None and k is not None and last < k:
        raise ValueError(f"input must have last dimension >= k = {k} but is {last}")
    return [(*source[:-1], k)] * 2


@top_k_op.gradient
@top_k_v2_op.gradient
def _top_k_grad(op: Operation, grad: Any, _: Any) -> list[Any]:
    """Puts each gradient back at the flat position of its element."""
    from opdock.ops.fill import range
    from opdock.ops.reduce import reduce_prod
    from opdock.ops.scatter import scatter_nd

    source, indices = op.inputs[0], op.outputs[1]
    full, picked = shape(source), shape(indices)
    rows = reshape(indices, [reduce_prod(picked[:-1]), picked[-1]])
    starts = expand_dims(range(shape(rows)[0]) * full[-1], -1)
    flat = reshape(rows + starts, [-1])
    out = scatter_nd(expand_dims(flat, -1), reshape(grad, [-1]), [reduce_prod(full)])
    return [reshape(out, full), *[None] * (len(op.inputs) - 1)]


@extensible
def top_k(input: Any, k: Any = 1, sorted: bool = True, name: str | None = None) -> Any:
    """The largest elements of each row, and where they are.

    Args:
        input: a real tensor of rank 1 or more.
        k: how many, a scalar int32.
        sorted: whether the elements come in descending order.
        name: a name for the operation.

    Returns:
        A namedtuple (values, indices); of equal elements the lower index comes first.

    Raises:
        ValueError: the rows are shorter than `k` (`InvalidArgumentError` at run time).
    """
    return top_k_v2_op(input, k, sorted=sorted, name=name)


# ---------------------------------------------------------------- sort, argsort
@extensible
def sort(
    values: Any, axis: int = -1, direction: str = "ASCENDING", name: str | None = None
) -> Tensor:
    """Sorts a tensor along a dimension.

    Args:
        values: a real tensor.
        axis: the dimension, the last by default.
        direction: "ASCENDING" or "DESCENDING".
        name: a name for the operation.

    Returns:
        A tensor of the same type and shape.

    Raises:
        ValueError: `axis` is not a constant scalar, or `direction` is unknown.
    """
    with name_scope(name, "sort", [values]):
        return _sorted(values, axis, direction, 0)


@extensible
def argsort(
    values: Any,
    axis: int = -1,
    direction: str = "ASCENDING",
    stable: bool = False,
    name: str | None = None,
) -> Tensor:
    """The indices that sort a tensor along a dimension.

    Args:
        values: a real tensor.
        axis: the dimension, the last by default.
        direction: "ASCENDING" or "DESCENDING".
        stable: accepted; equal elements always keep their order.
        name: a name for the operation.

    Returns:
        An int32 tensor of the same shape.

    Raises:
        ValueError: `axis` is not a constant scalar, or `direction` is unknown.
    """
    with name_scope(name, "argsort", [values]):
        return _sorted(values, axis, direction, 1)


def _sorted(values: Any, axis: Any, direction: str, output: int) -> Tensor:
    if direction not in _DIRECTIONS:
        raise ValueError(f"{direction} should be one of ASCENDING, DESCENDING")
    at = constant_value(convert_to_tensor(axis, name="axis"))
    if at is None or at.ndim != 0:
        raise ValueError("axis must be a constant scalar")
    values = convert_to_tensor(values, name="values")
    ascending = direction == "ASCENDING"
    if ascending:
        values = _mirrored(values)
    perm = _last_axis_swap(values, int(at))
    if perm is not None:
        from opdock.ops.matrix import transpose

        out = transpose(_descending(transpose(values, perm), output), perm)
    else:
        out = _descending(values, output)
    return _mirrored(out) if ascending and output == 0 else out


def _descending(values: Tensor, output: int) -> Tensor:
    return top_k(values, shape(values)[-1])[output]  # type: ignore[no-any-return]


def _mirrored(values: Tensor) -> Tensor:
    """The values in reverse order of size; for integers without overflow at either end."""
    if values.dtype.is_unsigned:
        return values.dtype.max - values  # type: ignore[no-any-return]
    if values.dtype.is_integer:
        return -1 - values
    return -values


def _last_axis_swap(values: Tensor, axis: int) -> Any:
    """The permutation that swaps `axis` with the last, None when it is the last."""
    known = values.raw_shape
    if axis == -1:
        return None
    if known is None:
        from opdock.ops.fill import range as span
        from opdock.ops.joining import concat

        n = rank(values)
        place = axis + n if axis < 0 else convert_to_tensor(axis, dtypes.int32)
        return concat([span(place), [n - 1], span(place + 1, n - 1), [place]], 0)
    if not -len(known) <= axis < len(known):
        raise ValueError(f"axis {axis} is out of range for rank {len(known)}")
    at, last = axis % len(known), len(known) - 1
    if at == last:
        return None
    perm = list(range(len(known)))
    perm[at], perm[last] = last, at
    return convert_to_tensor(perm, dtypes.int32, name="transposition")


# ---------------------------------------------------------------- LowerBound, UpperBound
_BOUND_ATTRS = "T: type, out_type: {int32, int64} = DT_INT32"
lower_bound_op = define_op(
    "LowerBound", "sorted_inputs: T, values: T -> output: out_type", _BOUND_ATTRS
).not_differentiable()
upper_bound_op = define_op(
    "UpperBound", "sorted_inputs: T, values: T -> output: out_type", _BOUND_ATTRS
).not_differentiable()


@lower_bound_op.shape
@upper_bound_op.shape
def _bound_shape(sig: ShapeSig) -> Shape:
    shapes.with_rank(sig.shapes[0], 2)
    return shapes.with_rank(sig.shapes[1], 2)


@extensible
def searchsorted(
    sorted_sequence: Any,
    values: Any,
    side: str = "left",
    out_type: Any = dtypes.int32,
    name: str | None = None,
) -> Tensor:
    """Where values would have to be inserted to keep sorted rows sorted.

    Args:
        sorted_sequence: a tensor, sorted along its last dimension.
        values: a tensor of the same type and the same leading dimensions.
        side: "left" for the first such position, "right" for the last.
        out_type: `tf.int32` or `tf.int64`.
        name: a name for the operation.

    Returns:
        A tensor of type `out_type` in the shape of `values`.

    Raises:
        ValueError: `side` is unknown.
    """
    if side not in ("left", "right"):
        raise ValueError(f"side must be either 'right' or 'left'.  Saw: {side}.")
    sorted_sequence = convert_to_tensor(sorted_sequence)
    values = convert_to_tensor(values, sorted_sequence.dtype.base_dtype)
    rows = reshape(sorted_sequence, [-1, shape(sorted_sequence)[-1]])
    wanted = reshape(values, [-1, shape(values)[-1]])
    op = upper_bound_op if side == "right" else lower_bound_op
    return reshape(op(rows, wanted, out_type=out_type, name=name), shape(values))


def nth_element(input: Any, n: Any, reverse: bool = False, name: str | None = None) -> Tensor:
    """The element that stands at place `n` of each row when it is sorted.

    Args:
        input: numbers of at least one dimension; a row is the last.
        n: an int32 scalar from 0 on.
        reverse: whether rows are sorted in descending order.
        name: a name for the operation.

    Raises:
        ValueError: rows are known to have no such place.
        InvalidArgumentError: when run, `n` is no place of a row.
    """
    return nth_element_op(input, n, reverse=reverse, name=name)  # type: ignore[no-any-return]
