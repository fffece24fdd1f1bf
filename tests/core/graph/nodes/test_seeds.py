"""Seeds: TF's rule for what a graph seed and an op seed give."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as made:
        yield made


def test_the_rule(graph):
    assert tf.get_seed(None) == (None, None)
    assert tf.get_seed(5) == (87654321, 5)
    tf.set_random_seed(7)
    assert graph.seed == 7
    assert tf.get_seed(5) == (7, 5)
    assert tf.get_seed(None) == (7, graph._last_id)
    graph.seed = 0
    assert tf.get_seed(0) == (0, 2**31 - 1)


def draw(seed, op_seed):
    with tf.Graph().as_default():
        if seed is not None:
            tf.set_random_seed(seed)
        x = tf.random_normal([4], seed=op_seed)
        with tf.Session() as session:
            return np.concatenate([session.run(x), session.run(x)])


@pytest.mark.parametrize(("seed", "op_seed"), [(1, None), (None, 2), (1, 2)])
def test_seeded_sequences_repeat_in_every_session(seed, op_seed):
    first, again = draw(seed, op_seed), draw(seed, op_seed)
    np.testing.assert_array_equal(first, again)
    assert (first[:4] != first[4:]).all()


def test_unseeded_ones_do_not():
    assert (draw(None, None) != draw(None, None)).any()


def test_bodies_draw_numbers_of_their_own():
    """With the graph's seed alone, as where they are parts of the graph."""
    tf.set_random_seed(3)
    yes = tf.placeholder(tf.bool, [])
    plain = tf.random_uniform([])

    def drawn():
        return tf.cond(yes, lambda: tf.random_uniform([]), lambda: tf.random_uniform([]))

    looped = [
        tf.while_loop(lambda i, x: i < 1, lambda i, x: (i + 1, tf.random_uniform([])), (0, 0.0))[1]
        for _ in range(2)
    ]
    asked = [plain, drawn(), drawn(), *looped, tf.random_uniform([])]
    with tf.Session() as session:
        first, other = (session.run(asked, {yes: y}) for y in (True, False))
    assert len({*first}) == len(asked) and first[1] != other[1]
    assert tf.get_seed(None)[1] == tf.get_default_graph()._last_id
