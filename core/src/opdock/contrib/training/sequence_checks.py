"""What sequences and their states have to be like, checked when the graph is built or run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import opdock as tf
from opdock.graph.nodes.operation import Tensor


def asserted(value: Tensor, condition: Any, *told: Any, name: str) -> Tensor:
    """A tensor that is read only where a condition holds, which else is told as one string."""
    words = [part if isinstance(part, str) else tf.as_string(part) for part in told]
    with tf.control_dependencies([tf.Assert(condition, [tf.strings.join(words)])]):
        return tf.identity(value, name=name)


def multiple_of(length: Tensor, number: Any, what: str) -> tuple[Any, tuple[Any, ...]]:
    """The condition that a length is a positive multiple of a number, and what to tell else."""
    holds = tf.logical_and(tf.equal(length % number, 0), tf.not_equal(length, 0))
    told = (
        f"{what} should be a multiple of: ", number, ", but saw value: ", length,
        ". Consider setting pad=True.",
    )  # fmt: skip
    return holds, told


def of_rank(value: Tensor, rank: int) -> Tensor:
    """A tensor whose rank is the one expected.

    Raises:
        ValueError: it is known not to be.
        InvalidArgumentError: it turns out not to be when it runs.
    """
    told = tf.strings.join(
        [f"Rank of tensor {value.name} should be: ", tf.as_string(rank), ", shape received:"]
    )
    with tf.control_dependencies(
        [tf.Assert(tf.equal(rank, tf.rank(value)), [told, tf.shape(value)])]
    ):
        checked = tf.identity(value, name="rank_checked")
    try:
        checked.set_shape(checked.shape.with_rank(rank))
    except ValueError as e:
        raise ValueError(f"Rank check failed for {value.name}: {e}") from e
    return checked


def of_shape_of(value: Tensor, other: Tensor) -> Tensor:
    """A tensor whose shape is that of another, of which at least the rank is known.

    Raises:
        ValueError: it is known not to be.
        InvalidArgumentError: it turns out not to be when it runs.
    """
    expected = tf.shape(other)
    value = of_rank(value, len(other.shape.as_list()))
    told = tf.strings.join(
        [f"Shape of tensor {value.name} should be: ", _text(expected), ", shape received: ",
         _text(tf.shape(value))]
    )  # fmt: skip
    same = tf.reduce_all(tf.equal(expected, tf.shape(value)))
    with tf.control_dependencies([tf.Assert(same, [told])]):
        checked = tf.identity(value, name="shape_checked")
    try:
        checked.set_shape(checked.shape.merge_with(other.shape))
    except ValueError as e:
        raise ValueError(f"Shape check failed for {value.name}: {e}") from e
    return checked


def of_sizes(value: Tensor, sizes: Sequence[Any], label: str) -> Tensor:
    """A tensor whose first dimensions have the sizes expected, numbers or tensors.

    Raises:
        ValueError: they are known not to have them, or are fewer.
        InvalidArgumentError: they turn out not to have them when it runs.
    """
    known = value.shape
    if known.ndims is not None:
        if known.ndims < len(sizes):
            raise ValueError(
                f"{label}: rank of input is not greater than max(dimensions): {known.ndims} vs. "
                f"{len(sizes) - 1}"
            )
        wanted = [None if isinstance(s, Tensor) else s for s in sizes]
        wanted += [None] * (known.ndims - len(sizes))
        try:
            value.set_shape(known.merge_with(wanted))
        except ValueError as e:
            raise ValueError(f"Dimensions check failed for {label}: {e}") from e
    checks = []
    found = tf.shape(value)
    for i, size in enumerate(sizes):
        told = tf.strings.join(
            [f"Dimension {i} of tensor labeled {label} should be: ", tf.as_string(size),
             ", shape received: ", _text(found)]
        )  # fmt: skip
        checks.append(tf.Assert(tf.equal(size, found[i]), [told]))
    with tf.control_dependencies(checks):
        return tf.identity(value, name=f"dims_checked_{label}")


def _text(numbers: Tensor) -> Tensor:
    """Numbers of a vector as one string."""
    joined: Tensor = tf.strings.reduce_join(tf.as_string(numbers), separator=" ")
    return joined


def fully_defined(what: str, tensors: dict[str, Tensor], but_first: bool = False) -> None:
    """Raises ValueError unless the shapes are known, but for the first dimension if that is so."""
    for key, tensor in tensors.items():
        if not tensor.shape[1 if but_first else 0 :].is_fully_defined():
            but = "(ignoring first dimension)" if but_first else ""
            raise ValueError(f"Shape for {what} {key} is not fully defined {but}: {tensor.shape}")
