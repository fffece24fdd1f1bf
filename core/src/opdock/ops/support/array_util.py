"""Small helpers of the array family: dimension arithmetic and deprecated argument names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from opdock import shapes
from opdock.ops.registry import OpSpec, ShapeSig
from opdock.shapes import Shape

Dim = int | None


# ---------------------------------------------------------------- dimensions
def add(a: Dim, b: Dim) -> Dim:
    """The sum; zero keeps the other side even when it is unknown."""
    if a is None or b is None:
        return a if b == 0 else b if a == 0 else None
    return a + b


def subtract(a: Dim, b: int) -> Dim:
    """`a - b`; ValueError when the result would be negative."""
    if a is None:
        return None
    if a < b:
        raise ValueError(f"Negative dimension size caused by subtracting {b} from {a}")
    return a - b


def multiply(a: Dim, b: Dim) -> Dim:
    """The product; a zero side decides, a one side keeps the other."""
    if a == 0 or b == 0:
        return 0
    if a is None or b is None:
        return a if b == 1 else b if a == 1 else None
    return a * b


def divide_exactly(a: Dim, n: int) -> Dim:
    """`a / n`; ValueError unless it divides evenly."""
    if a is None or n == 1:
        return a
    if n <= 0:
        raise ValueError(f"Divisor must be positive but is {n}")
    if a % n:
        raise ValueError(f"Dimension size must be evenly divisible by {n} but is {a}")
    return a // n


def with_dim(dim: Dim, value: int) -> int:
    """`value`; ValueError when `dim` is known and differs."""
    if dim is not None and dim != value:
        raise ValueError(f"Dimension must be {value} but is {dim}")
    return value


def replace(shape: tuple[Dim, ...], index: int, dim: Dim) -> tuple[Dim, ...]:
    """`shape` with one dimension replaced."""
    index %= len(shape)
    return shape[:index] + (dim,) + shape[index + 1 :]


def subshape(shape: Shape, start: int, end: int | None = None) -> Shape:
    """`shape[start:end]`; unknown rank stays unknown."""
    return None if shape is None else shape[start:end]


def vector_length(shape: Shape) -> Dim:
    """The length of a rank-1 shape; ValueError when the rank is not 1."""
    return shapes.with_rank(shape, 1)[0]


def const_ints(sig: ShapeSig, index: int) -> list[int] | None:
    """The constant integers of input `index`, flattened, or None when they are not known."""
    value = sig.const(index)
    return None if value is None else [int(v) for v in np.asarray(value).reshape(-1)]


def const_int(sig: ShapeSig, index: int) -> int | None:
    """The constant scalar of input `index`; ValueError when the input is not a scalar."""
    shapes.with_rank(sig.shapes[index], 0)
    values = const_ints(sig, index)
    return None if values is None else values[0]


def scalar_shape(sig: ShapeSig, index: int) -> None:
    """Checks that input `index` may be a scalar."""
    shape = sig.shapes[index]
    if shape:
        raise ValueError(f"Input must be scalar but has rank {len(shape)}")


# ---------------------------------------------------------------- gradients
def no_gradient(spec: OpSpec) -> None:
    """Declares that TF registers no gradient, so differentiating through the op is LookupError."""

    def missing(op: Any, *grads: Any) -> Any:
        raise LookupError(
            f"No gradient defined for operation '{op.name}' (op type: {spec.name}), created at "
            f"{op.user_line}"
        )

    spec.gradient(missing)


def nothing(count: int) -> Callable[..., list[None]]:
    """A gradient function that gives None for each of `count` inputs."""
    return lambda op, *grads: [None] * count


# ---------------------------------------------------------------- public arguments
def renamed(new_name: str, new: Any, old_name: str, old: Any) -> Any:
    """The value of an argument that has a deprecated second name.

    Raises:
        ValueError: both names are given.
    """
    if old is None:
        return new
    if new is not None:
        raise ValueError(f"Cannot specify both '{old_name}' and '{new_name}'")
    return old


def held(sizes: Any, dtype: np.dtype[Any]) -> Any:
    """Sizes as an array; None where the type has no room for them, an error of the step."""
    largest = max(sizes, default=0) if isinstance(sizes, tuple) else sizes
    return np.array(sizes, dtype) if largest <= np.iinfo(dtype).max else None
