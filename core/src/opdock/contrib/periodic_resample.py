"""`tf.contrib.periodic_resample`: dimensions that grow at the cost of one, as sub-pixels do."""

from __future__ import annotations

import math
from typing import Any

import opdock as tf

__all__ = ["periodic_resample"]


def periodic_resample(values: Any, shape: Any, name: str | None = None) -> Any:
    """Spreads one dimension of a tensor over the others, as `tf.depth_to_space` does over two.

    Where a dimension is to be g times as long, g neighbours along it come from g stretches of the
    dimension that pays for it. Lengths that are no multiples count as the next one, so that some
    elements are repeated and others left out.

    Args:
        values: a tensor of numbers.
        shape: the sizes, with None for the dimension that pays.
        name: a name for the operations.

    Raises:
        InvalidArgumentError: another number of dimensions is asked for, or of those that pay; a
            dimension is to be shorter, or nothing is left of the one that pays. Where sizes are
            not known yet, when it runs.
    """
    with tf.name_scope(name, "PeriodicResample", [values]):
        values = tf.convert_to_tensor(values, name="values")
        wanted = [None if n is None or n < 1 else int(n) for n in shape]
        _check_ranks(values.shape, wanted)
        pays = wanted.index(None)
        slab = math.prod(n for n in wanted if n is not None)
        with tf.control_dependencies(_checks(values, wanted, slab)):
            sizes = tf.shape(values, out_type=tf.int64)
        left = tf.size(values, out_type=tf.int64) // slab
        place, stretch, period = (tf.constant(n, tf.int64) for n in (0, 0, 1))
        strides = tf.cumprod(sizes, exclusive=True, reverse=True)
        for axis, n in enumerate(wanted):
            steps = tf.range(left if n is None else tf.constant(n, tf.int64))
            steps = tf.reshape(steps, [-1 if i == axis else 1 for i in range(len(wanted))])
            if n is None:
                place += steps * strides[axis]
                continue
            times = (n + sizes[axis] - 1) // sizes[axis]
            place += steps // times * strides[axis]
            stretch += steps % times * period
            period *= times
        found = tf.gather(tf.reshape(values, [-1]), place + left * stretch * strides[pays])
        count = values.shape.num_elements()
        wanted[pays] = None if count is None else count // slab
        found.set_shape(wanted)
        return found


def _check_ranks(shape: Any, wanted: list[int | None]) -> None:
    message = ""
    if shape.rank not in (None, len(wanted)):
        message = (
            f"periodic_resample expects the rank of the input tensor, {shape.rank}, to be the same "
            f"as the length of the desired shape, {len(wanted)}."
        )
    elif wanted.count(None) != 1:
        message = "periodic_resample expects one index to be marked as adjustable, no more."
    if message:
        raise tf.errors.InvalidArgumentError(None, None, message)


def _checks(values: Any, wanted: list[int | None], slab: int) -> list[Any]:
    known = values.shape.as_list() if values.shape.rank is not None else [None] * len(wanted)
    sizes = tf.shape(values, out_type=tf.int64)
    right = [
        tf.assert_rank(values, len(wanted), message="periodic_resample:"),
        tf.assert_greater_equal(
            tf.size(values, out_type=tf.int64), tf.constant(slab, tf.int64),
            message="periodic_resample: nothing is left of the adjustable dimension.",
        ),
    ]  # fmt: skip
    for axis, (size, n) in enumerate(zip(known, wanted, strict=True)):
        if n is None or (size is not None and size <= n):
            continue
        told = f"Dimension {axis} input tensor has size {'?' if size is None else size}"
        message = f"periodic_resample: {told}, desired shape has size {n}."
        right.append(tf.Assert(sizes[axis] <= n, [message, sizes[axis]]))
    return right
