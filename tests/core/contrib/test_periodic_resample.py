"""`tf.contrib.periodic_resample` against its formula, written out element by element."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import opdock as tf

resample = tf.contrib.periodic_resample.periodic_resample
CASES = [
    ((3, 4), (6, None)),
    ((3, 4), (5, None)),
    ((2, 2, 4), (4, 4, None)),
    ((2, 8, 3), (4, None, 5)),
    ((12, 2, 2), (None, 4, 4)),
    ((2, 2, 2, 8), (4, 4, 4, None)),
    ((4, 3), (0, 3)),
]


def expected(values: np.ndarray, shape: tuple[int | None, ...]) -> np.ndarray:
    pays = next(i for i, n in enumerate(shape) if not n)
    slab = math.prod(n for n in shape if n)
    sizes = [n or values.size // slab for n in shape]
    times = [-(-n // old) for n, old in zip(sizes, values.shape, strict=True)]
    out = np.empty(sizes, values.dtype)
    for place in itertools.product(*map(range, sizes)):
        source = [s // g for s, g in zip(place, times, strict=True)]
        stretch = sum(
            math.prod(times[:i]) * (s % times[i]) for i, s in enumerate(place) if i != pays
        )
        source[pays] = sizes[pays] * stretch + place[pays]
        out[place] = values.ravel()[
            sum(s * n for s, n in zip(source, strides(values), strict=True))
        ]
    return out


def strides(values: np.ndarray) -> list[int]:
    return [math.prod(values.shape[i + 1 :]) for i in range(values.ndim)]


@pytest.mark.parametrize(("size", "shape"), CASES)
@pytest.mark.parametrize("known", [True, False])
def test_elements_come_from_where_the_formula_says(size, shape, known) -> None:
    values = np.arange(math.prod(size), dtype=np.float32).reshape(size)
    with tf.Graph().as_default(), tf.Session() as session:
        place = tf.placeholder(tf.float32, size if known else None)
        found = resample(place, shape)
        result = expected(values, shape)
        assert found.shape.as_list() == ([*result.shape] if known else [n or None for n in shape])
        np.testing.assert_array_equal(session.run(found, {place: values}), result)


def test_gradients_go_back_to_where_elements_came_from() -> None:
    with tf.Graph().as_default(), tf.Session():
        x = tf.placeholder(tf.float32, [2, 2, 4])
        y = resample(x, [4, 4, None])
        assert tf.test.compute_gradient_error(x, [2, 2, 4], y, [4, 4, 1]) < 1e-3


@pytest.mark.parametrize(
    ("shape", "words"),
    [
        ([None, 4, 4], "rank of the input tensor, 4, .* desired shape, 3"),
        ([1, 2, 2, 4], "one index"),
        ([None, None, 2, 4], "one index"),
        ([None, 4, 4, 1], "Dimension 3 input tensor has size 4, desired shape has size 1"),
        ([None, 4, 4, 9], "nothing is left"),
    ],
)
def test_shapes_that_cannot_be_are_refused(shape, words) -> None:
    with (
        tf.Graph().as_default(),
        tf.Session() as session,
        pytest.raises(tf.errors.InvalidArgumentError, match=words),
    ):
        session.run(resample(np.zeros([1, 2, 2, 4]), shape))


def test_sizes_that_are_known_late_are_checked_then() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        place = tf.placeholder(tf.float32, [None, None])
        found = resample(place, [2, None])
        assert session.run(found, {place: np.ones([1, 4])}).shape == (2, 2)
        with pytest.raises(tf.errors.InvalidArgumentError, match="desired shape has size 2"):
            session.run(found, {place: np.ones([3, 4])})
