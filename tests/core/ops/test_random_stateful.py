"""Generators whose state is a variable: TensorFlow's numbers, and what moves the state."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf

Generator = tf.random.experimental.Generator


def draw(generator, *fetches):
    """Evaluates one after the other, from the generator's start."""
    with tf.Session() as session:
        session.run(generator.state.initializer)
        return [session.run(f) for f in fetches]


def test_tensorflows_numbers():
    g = Generator.from_seed(1234)
    a, b, c, d, e, state = draw(
        g, g.normal([5]), g.uniform([3], dtype=tf.float64), g.uniform_full_int([3]),
        g.uniform([4], 0, 100, dtype=tf.int64), g.truncated_normal([4]), g.state,
    )  # fmt: skip
    np.testing.assert_allclose(
        a, [0.9356609, 1.0854305, -0.93788373, -0.5061547, 1.3169702], rtol=1e-6
    )
    np.testing.assert_array_equal(b, [0.00809908828468986, 0.2664707935772108, 0.13053349427562244])
    assert c.tolist() == [1775134934243994940, 9513599738125333950, 10189209513102337927]
    assert d.tolist() == [2, 1, 68, 54]
    np.testing.assert_allclose(e, [-1.8538324, -0.37835652, 0.93031716, 0.29245976], rtol=1e-6)
    assert state.tolist() == [1234 + 19 * 256, 0, 0]


def test_a_skip_is_as_long_as_a_draw():
    g = Generator.from_key_counter(7, [1, 2], 1)
    copied = Generator(copy_from=g)
    with tf.Session() as session:
        session.run(g.state.initializer)
        session.run(copied.state.initializer)
        session.run([g.normal([6]), copied.skip(6)])
        assert session.run(g.state).tolist() == session.run(copied.state).tolist()
        assert session.run(g.key) == 7
        session.run(g.reset_from_key_counter(7, [1, 2]))
        session.run(copied.reset([1, 2, 7]))
        one, two = session.run([g.make_seeds(3), copied.make_seeds(3)])
        np.testing.assert_array_equal(one, two)
        assert one.shape == (2, 3)
        session.run(g.reset_from_seed(5))
        assert session.run(g.state).tolist() == [5, 0, 0]


def test_what_nobody_can_tell_before():
    g = Generator.from_non_deterministic_state()
    first, second = (draw(g, g.state)[0].tolist() for _ in range(2))
    assert first != second
    tf.random.experimental.set_global_generator(g)
    assert tf.random.experimental.get_global_generator() is g


def test_what_is_refused():
    with pytest.raises(ValueError, match="Unsupported algorithm id: 9"):
        Generator.from_seed(1, alg=9)
    with pytest.raises(ValueError, match="needs both its state and its algorithm"):
        Generator(alg=1)
    with pytest.raises(ValueError, match="Must specify maxval for integer dtype"):
        Generator.from_seed(1).uniform([2], dtype=tf.int32)
    with pytest.raises(ValueError, match="should only have one dimension"):
        tf.random.experimental.create_rng_state([[1]], 1)
    g = Generator.from_seed(1)
    with pytest.raises(tf.errors.InvalidArgumentError, match="Need minval < maxval, got 3 >= 3"):
        draw(g, g.uniform([2], 3, 3, dtype=tf.int32))
    g = Generator.from_state([1, 2], alg=2)
    with pytest.raises(tf.errors.InvalidArgumentError, match="Unsupported algorithm id: 2"):
        draw(g, g.normal([2]))


@pytest.mark.parametrize(
    ("count", "prob", "firsts"),
    [
        (20, 0.3, [6, 5, 6, 6, 7, 6]),
        (1000, 0.03, [30, 27, 27, 31, 29, 29]),
        (1e6, 0.7, [700026, 700211, 700245, 699913, 700054, 700054]),
        (40, 0.6, [24, 26, 26, 23, 24, 24]),
        (7, 0.9, [6, 7, 7, 6, 5, 7]),
        (15, 0.97, [15, 15, 15, 15, 13, 15]),
        (25, 0.41, [10, 9, 9, 11, 10, 10]),
    ],
)
def test_tensorflows_binomials(count, prob, firsts):
    """What TensorFlow draws first of the streams 0 to 5: both ways to sample, and their mirrors."""
    g = Generator.from_seed(0)
    state = tf.placeholder(tf.int64, [3])
    reset, one = g.reset(state), g.binomial([1], np.float64(count), np.float64(prob))
    with tf.Session() as session:
        session.run(g.state.initializer)
        drawn = []
        for seed in range(6):
            session.run(reset, {state: [seed, 0, 0]})
            drawn += session.run(one).tolist()
    assert drawn == firsts


def test_binomials_move_the_state_as_far_as_tensorflows():
    g = Generator.from_seed(7)
    rows = g.binomial([2, 3], [4.0, 100.0], [0.5, 0.25], tf.float32)
    alike, state = g.binomial([101], 4.0, 0.5), g.state
    first, after, _, last = draw(g, rows, state, alike, state)
    assert first.dtype == np.float32
    assert ((first >= 0) & (first <= [[4], [100]])).all()
    assert after.tolist() == [7 + 256 * (2 * 200 * 6 // 4), 0, 0]
    assert last[0] - after[0] == 256 * (2 * 200 * 103 // 4)


def test_binomials_of_no_numbers():
    g, nan, inf = Generator.from_seed(7), np.nan, np.inf
    counts, probs = np.array([nan, inf, 4, -inf]), np.array([0.5, 0.5, nan, 0.5])
    as_floats, as_integers = draw(
        g, g.binomial([4], counts, probs, tf.float64), g.binomial([4], counts, probs)
    )
    np.testing.assert_array_equal(as_floats, [nan, nan, nan, 0])
    assert as_integers.tolist() == [-(2**31)] * 3 + [0]
