"""What libraries of distributions take from TF's `distributions.util`: shapes and matrices.

Where a value is known when the graph is built, it is used, and less is left for steps.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from opdock import dtypes
from opdock.graph.nodes.constant_value import constant_value
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.scopes import control_dependencies, name_scope
from opdock.ops.arithmetic import mod
from opdock.ops.array import (
    broadcast_dynamic_shape,
    broadcast_static_shape,
    rank,
    reshape,
    shape,
    squeeze,
)
from opdock.ops.cast import cast
from opdock.ops.check import assert_equal
from opdock.ops.compare import equal, logical_or
from opdock.ops.composed.matrix_norm import norm
from opdock.ops.composed.reduce_stats import reduce_logsumexp
from opdock.ops.control import cond
from opdock.ops.diag import matrix_diag, matrix_diag_part, matrix_set_diag
from opdock.ops.elementary import abs as absolute
from opdock.ops.elementary import exp, expm1, is_inf, log, sign, sqrt
from opdock.ops.fill import ones_like, zeros, zeros_like
from opdock.ops.fill import range as numbers
from opdock.ops.identity import identity
from opdock.ops.joining import concat, stack
from opdock.ops.matrix import matrix_band_part, transpose
from opdock.ops.padding import pad as padded
from opdock.ops.reduce import reduce_all, reduce_max, reduce_sum
from opdock.ops.select import one_hot, where_v2
from opdock.ops.slicing import slice as part_of
from opdock.ops.tiling import reverse
from opdock.shapes import TensorShape, dimension_value

__all__ = [
    "AppendDocstring", "dimension_size", "fill_triangular", "fill_triangular_inverse",
    "matrix_diag_transform", "maybe_get_static_value", "pad", "parent_frame_arguments",
    "pick_vector", "prefer_static_broadcast_shape", "prefer_static_rank", "prefer_static_shape",
    "prefer_static_value", "process_quadrature_grid_and_probs", "reduce_weighted_logsumexp",
    "rotate_transpose", "same_dynamic_shape", "softplus_inverse", "tridiag",
]  # fmt: skip


# ---------------------------------------------------------------- what is known already
def maybe_get_static_value(x: Any, dtype: Any = None) -> Any:
    """The value of a tensor as an array of some type, or None if it is not known yet."""
    try:
        found = None if x is None else constant_value(x)
    except TypeError:  # no tensor
        found = x
    return found if found is None or dtype is None else np.array(found, dtype)


def prefer_static_value(x: Tensor) -> Any:
    """The value of a tensor where it is known, else the tensor."""
    found = constant_value(x)
    return x if found is None else found


def prefer_static_rank(x: Tensor) -> Any:
    """The number of dimensions, as an array where it is known."""
    return prefer_static_value(rank(x))


def prefer_static_shape(x: Tensor) -> Any:
    """The shape, as an array where it is known."""
    return prefer_static_value(shape(x))


def dimension_size(x: Tensor, axis: int) -> Any:
    """The size of a dimension, as a number where it is known."""
    known = dimension_value(x.shape.with_rank_at_least(abs(axis))[axis])
    return shape(x)[axis] if known is None else known


def prefer_static_broadcast_shape(
    shape1: Any, shape2: Any, name: str = "prefer_static_broadcast_shape"
) -> Any:
    """The shape that two shapes broadcast to: a TensorShape where both are known.

    Raises:
        ValueError: one is a TensorShape that is known in part.
    """

    def known(given: Any) -> TensorShape | None:
        if isinstance(given, TensorShape):
            return given
        found = constant_value(convert_to_tensor(given, dtypes.int32, "shape"))
        return None if found is None else TensorShape(found)

    def tensor(given: Any) -> Tensor:
        if not isinstance(given, TensorShape):
            return convert_to_tensor(given, dtypes.int32, "shape")
        if not given.is_fully_defined():
            raise ValueError("Cannot broadcast from partially defined `TensorShape`.")
        return convert_to_tensor(given.as_list(), dtypes.int32, "shape")

    with name_scope(name, values=[shape1, shape2]):
        ours, theirs = known(shape1), known(shape2)
        if ours is not None and theirs is not None:
            return broadcast_static_shape(ours, theirs)
        return broadcast_dynamic_shape(tensor(shape1), tensor(shape2))


def same_dynamic_shape(a: Any, b: Any) -> Tensor:
    """Whether two tensors have one shape, a boolean scalar."""
    a, b = convert_to_tensor(a, name="a"), convert_to_tensor(b, name="b")
    return cond(  # type: ignore[no-any-return]
        equal(rank(a), rank(b)),
        # In both orders: where the branch is not taken, the shapes need not compare.
        lambda: reduce_all(equal(concat([shape(a), shape(b)], 0), concat([shape(b), shape(a)], 0))),
        lambda: convert_to_tensor(False),
    )


# ---------------------------------------------------------------- parts in another order
def rotate_transpose(x: Any, shift: Any, name: str = "rotate_transpose") -> Tensor:
    """Moves the dimensions of a tensor round in a circle.

    Args:
        x: a tensor.
        shift: by how many places, to the right if above zero.
        name: a name for the operations.

    Raises:
        TypeError: `shift` is no integer.
    """
    with name_scope(name, values=[x, shift]):
        x, shift = convert_to_tensor(x, name="x"), convert_to_tensor(shift, name="shift")
        if not shift.dtype.is_integer:
            raise TypeError(f"Expected integer shift, got {shift.dtype.name}")
        ndims, places = x.shape.ndims, constant_value(shift)
        if ndims is not None and places is not None:
            order = np.roll(np.arange(ndims), int(places))
            return x if (order == np.arange(ndims)).all() else transpose(x, order)
        first = mod(-shift, rank(x))
        return transpose(x, concat([numbers(first, rank(x)), numbers(0, first)], 0))


def pick_vector(cond: Any, true_vector: Any, false_vector: Any, name: str = "pick_vector") -> Any:
    """One of two vectors, whose lengths may differ.

    Args:
        cond: a boolean scalar.
        true_vector: the one where it is true.
        false_vector: the other.
        name: a name for the operations.

    Raises:
        TypeError: `cond` is not boolean, or the vectors have two types.
    """
    with name_scope(name, values=[cond, true_vector, false_vector]):
        chosen = convert_to_tensor(cond, name="cond")
        if chosen.dtype != dtypes.bool:
            raise TypeError(f"{chosen}.dtype={chosen.dtype} which is not {dtypes.bool}")
        known = constant_value(chosen)
        if known is not None:
            return true_vector if known else false_vector
        one = convert_to_tensor(true_vector, name="true_vector")
        other = convert_to_tensor(false_vector, name="false_vector")
        if one.dtype != other.dtype:
            raise TypeError(f"{one}.dtype={one.dtype} does not match {other}.dtype={other.dtype}")
        n = shape(one)[0]
        begin, size = where_v2(chosen, 0, n), where_v2(chosen, n, -1)
        return part_of(concat([one, other], 0), [begin], [size])


def pad(
    x: Any, axis: Any, front: bool = False, back: bool = False, value: Any = 0, count: Any = 1,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """Puts values before or behind what a tensor has along a dimension.

    Args:
        x: a tensor.
        axis: the dimension; may be negative.
        front: whether there are some before.
        back: whether there are some behind.
        value: the value.
        count: how many.
        name: a name for the operations.

    Raises:
        ValueError: neither before nor behind.
        TypeError: `count` is no integer.
    """
    with name_scope(name, "pad", [x, value, count]):
        x = convert_to_tensor(x, name="x")
        value = convert_to_tensor(value, x.dtype, "value")
        count = convert_to_tensor(count, name="count")
        if not count.dtype.is_integer:
            raise TypeError(f"`count.dtype` (`{count.dtype.name}`) must be `int`-like.")
        if not front and not back:
            raise ValueError("At least one of `front`, `back` must be `True`.")
        ndims = rank(x, name="ndims") if x.shape.ndims is None else x.shape.ndims
        axis = convert_to_tensor(axis, name="axis")
        known, many = constant_value(axis), constant_value(count)
        at = where_v2(axis < 0, ndims + axis, axis) if known is None else int(known)
        if known is not None and at < 0:
            at = ndims + at
        ends = stack([at if front else -1, at if back else -1])
        out = padded(
            x, one_hot(ends, ndims, on_value=count, axis=0, dtype=dtypes.int32),
            constant_values=value,
        )  # fmt: skip
        if isinstance(at, int):
            size = dimension_value(x.shape[at]) if x.shape.ndims is not None else None
            grown = None if size is None or many is None else size + int(many) * (front + back)
            out.set_shape(x.shape[:at].concatenate([grown]).concatenate(x.shape[at + 1 :]))
        return out


# ---------------------------------------------------------------- matrices
def matrix_diag_transform(
    matrix: Any, transform: Callable[[Tensor], Tensor] | None = None, name: str | None = None
) -> Tensor:
    """Matrices whose diagonals have gone through a function."""
    with name_scope(name, "matrix_diag_transform", [matrix]):
        whole = convert_to_tensor(matrix, name="matrix")
        if transform is None:
            return whole
        return matrix_set_diag(whole, transform(matrix_diag_part(whole)))


def fill_triangular(x: Any, upper: bool = False, name: str | None = None) -> Tensor:
    """Triangular matrices of vectors, filled in a spiral.

    Args:
        x: [..., n (n + 1) / 2].
        upper: whether the upper triangle is filled.
        name: a name for the operations.

    Returns:
        [..., n, n].

    Raises:
        ValueError: there is no such n.
    """
    with name_scope(name, "fill_triangular", [x]):
        x = convert_to_tensor(x, name="x")
        outer = x.shape.with_rank_at_least(1)[:-1]
        length = dimension_value(x.shape.with_rank_at_least(1)[-1])
        n: Any
        if length is None:
            n = cast(sqrt(0.25 + cast(2 * shape(x)[-1], dtypes.float32)), dtypes.int32)
            static = outer.concatenate([None, None])
        else:
            n = int(np.sqrt(0.25 + 2.0 * length) - 0.5)
            if n * (n + 1) // 2 != length:
                raise ValueError(
                    f"Input right-most shape ({length}) does not correspond to a triangular matrix."
                )
            static = outer.concatenate([n, n])
        backwards = reverse(x[..., n:] if upper else x, [prefer_static_rank(x) - 1])
        spiral = concat([x, backwards] if upper else [x[..., n:], backwards], -1)
        square = reshape(spiral, concat([shape(x)[:-1], [n, n]], 0))
        out = matrix_band_part(square, 0 if upper else -1, -1 if upper else 0)
        out.set_shape(static)
        return out


def fill_triangular_inverse(x: Any, upper: bool = False, name: str | None = None) -> Tensor:
    """The vectors of which `fill_triangular` makes triangular matrices."""
    with name_scope(name, "fill_triangular_inverse", [x]):
        x = convert_to_tensor(x, name="x")
        known = dimension_value(x.shape.with_rank_at_least(2)[-1])
        n: Any = shape(x)[-1] if known is None else known
        length = n * (n + 1) // 2
        ndims = prefer_static_rank(x)
        first = x[..., 0, :] if upper else reverse(x[..., -1, :], [ndims - 2])
        others = x[..., 1:, :] if upper else x[..., :-1, :]
        both = others + reverse(reverse(others, [ndims - 1]), [ndims - 2])
        rest = reshape(both, concat([shape(x)[:-2], [n * (n - 1)]], 0))
        out = concat([first, rest[..., : length - n]], -1)
        out.set_shape(x.shape[:-2].concatenate([None if known is None else length]))
        return out


def tridiag(
    below: Any = None, diag: Any = None, above: Any = None, name: str | None = None
) -> Tensor:
    """Matrices with values on the diagonal and beside it.

    Args:
        below: [..., d - 1]; None for zeros.
        diag: [..., d].
        above: [..., d - 1].
        name: a name for the operations.

    Raises:
        ValueError: all are None.
    """

    def beside(values: Any, called: str) -> Tensor:
        tensor = convert_to_tensor(values, name=called)
        zero = zeros(concat([shape(tensor)[:-1], [1]], 0), tensor.dtype)
        return matrix_diag(concat([zero, tensor, zero], -1))

    with name_scope(name, "tridiag", [below, diag, above]):
        parts = []
        if below is not None:
            parts.append(beside(below, "below")[..., :-1, 1:])
        if diag is not None:
            parts.append(matrix_diag(convert_to_tensor(diag, name="diag")))
        if above is not None:
            parts.append(beside(above, "above")[..., 1:, :-1])
        if not parts:
            raise ValueError("Must specify at least one of `below`, `diag`, `above`.")
        return functools.reduce(lambda total, part: total + part, parts)


# ---------------------------------------------------------------- numbers
def reduce_weighted_logsumexp(
    logx: Any, w: Any = None, axis: Any = None, keep_dims: bool = False, return_sign: bool = False,
    name: str | None = None,
) -> Any:  # fmt: skip
    """`log(abs(sum(w * exp(logx))))`, without what is too large or too small in between.

    Args:
        logx: logarithms.
        w: weights of any sign; None for ones.
        axis: the dimensions to sum over; None for all.
        keep_dims: whether they stay, with size 1.
        return_sign: whether the sum's sign is given too.
        name: a name for the operations.
    """
    with name_scope(name, "reduce_weighted_logsumexp", [logx, w]):
        logx = convert_to_tensor(logx, name="logx")
        if w is None:
            found = reduce_logsumexp(logx, axis=axis, keepdims=keep_dims)
            return (found, ones_like(found)) if return_sign else found
        w = convert_to_tensor(w, logx.dtype, "w")
        sizes = logx + log(absolute(w))
        largest = reduce_max(sizes, axis=axis, keepdims=True)
        largest = where_v2(is_inf(largest), zeros_like(largest), largest)
        total = reduce_sum(sign(w) * exp(sizes - largest), axis=axis, keepdims=keep_dims)
        if not keep_dims:
            largest = squeeze(largest, axis)
        found = largest + log(sign(total) * total)
        return (found, sign(total)) if return_sign else found


def softplus_inverse(x: Any, name: str | None = None) -> Tensor:
    """`log(exp(x) - 1)`, exact for small numbers and for large ones."""
    with name_scope(name, "softplus_inverse", [x]):
        x = convert_to_tensor(x, name="x")
        limit = np.log(np.finfo(x.dtype.as_numpy_dtype).eps) + 2.0
        small, large = x < np.exp(limit), x > -limit
        # What is not used must be finite, for the sake of gradients.
        usual = where_v2(logical_or(small, large), ones_like(x), x)
        between = usual + log(-expm1(-usual))
        return where_v2(small, log(x), where_v2(large, x, between))


def process_quadrature_grid_and_probs(
    quadrature_grid_and_probs: Any, dtype: dtypes.DType, validate_args: bool,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Points and weights that sum to one; Gauss and Hermite's eight by default.

    Args:
        quadrature_grid_and_probs: points and weights of one length, or None.
        dtype: their type.
        validate_args: whether steps check the lengths where they are not known.
        name: a name for the operations.

    Raises:
        ValueError: the lengths differ.
    """
    with name_scope(name, "process_quadrature_grid_and_probs", [quadrature_grid_and_probs]):
        if quadrature_grid_and_probs is None:
            points, weights = np.polynomial.hermite.hermgauss(deg=8)
            weights = weights / np.abs(weights).sum()
            return convert_to_tensor(points, dtype, "grid"), convert_to_tensor(
                weights, dtype, "probs"
            )
        given, raw = quadrature_grid_and_probs
        grid = convert_to_tensor(given, dtype, "grid")
        probs = convert_to_tensor(raw, dtype, "unnormalized_probs")
        probs = probs / norm(probs, ord=1, axis=-1, keepdims=True, name="probs")
        message = (
            "`quadrature_grid_and_probs` must be a `tuple` of same-length zero-th-dimension "
            "`Tensor`s"
        )
        sizes = [dimension_value(t.shape.with_rank_at_least(1)[-1]) for t in (probs, grid)]
        if None not in sizes:
            if sizes[0] != sizes[1]:
                raise ValueError(f"{message} (saw lengths {sizes[0]}, {sizes[1]})")
        elif validate_args:
            same = assert_equal(
                dimension_size(probs, -1), dimension_size(grid, -1), message=message
            )
            with control_dependencies([same]):
                grid, probs = identity(grid), identity(probs)
        return grid, probs


# ---------------------------------------------------------------- functions and their texts
def parent_frame_arguments() -> dict[str, Any]:
    """The arguments of the function that calls this, by name, without those of `*args`.

    They are as they are now: call it first of all.
    """
    frame = inspect.currentframe()
    caller = None if frame is None else frame.f_back
    if caller is None:
        return {}
    names, _, keywords, values = inspect.getargvalues(caller)
    found = {name: values[name] for name in names}
    if keywords is not None:
        found.update(values[keywords])
    return found


class AppendDocstring:
    """A decorator that adds to a function's docstring.

    Args:
        additional_note: what is added.
        kwargs_dict: further arguments and what they are.

    Raises:
        ValueError: the name of an argument has blanks, or what it is has several lines.
    """

    def __init__(
        self, additional_note: str = "", kwargs_dict: dict[str, str] | None = None
    ) -> None:
        bullets = []
        for key, text in sorted((kwargs_dict or {}).items()):
            if any(letter.isspace() for letter in key):
                raise ValueError(f'Parameter name "{key}" contains whitespace.')
            if "\n" in text.lstrip():
                raise ValueError(f'Parameter description for "{key}" contains newlines.')
            bullets.append(f"*  `{key}`: {text.lstrip()}")
        listed = "\n\n##### `kwargs`:\n\n" + "\n".join(bullets) if bullets else ""
        self._note = additional_note + listed

    def __call__(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        """The function, with the note."""

        @functools.wraps(fn)
        def noted(*args: Any, **kwargs: Any) -> Any:
            return fn(*args, **kwargs)

        noted.__doc__ = self._note if fn.__doc__ is None else f"{fn.__doc__}\n{self._note}"
        return noted
