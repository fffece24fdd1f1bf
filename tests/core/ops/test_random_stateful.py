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
