"""Subscripts by places that are known when a step runs: `x[i]` in a loop."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf
from opdock.graph.nodes import slicespec

X = np.arange(60.0, dtype=np.float32).reshape(5, 4, 3)
PICKS = {
    "one": (lambda x, i: x[i], lambda x, i: x[i]),
    "inner": (lambda x, i: x[:, i], lambda x, i: x[:, i]),
    "last": (lambda x, i: x[..., i], lambda x, i: x[..., i]),
    "all": (lambda x, i: x[i, i, i], lambda x, i: x[i, i, i]),
    "stepped": (lambda x, i: x[::2, i], lambda x, i: x[::2, i]),
    "new": (lambda x, i: x[i, tf.newaxis, :, 1], lambda x, i: x[i, None, :, 1]),
    "both": (lambda x, i: x[i, tf.newaxis, ..., i], lambda x, i: x[i, None, ..., i]),
}


@pytest.mark.parametrize("name", PICKS)
def test_places_are_filled_in(name, monkeypatch):
    pick, wanted = PICKS[name]
    x, i = tf.placeholder(tf.float32, [5, 4, 3]), tf.placeholder(tf.int32, [])
    y = pick(x, i)
    with tf.Session() as session:
        session.run(y, {x: X, i: 0})
        # The specification was looked at when the program was made.
        monkeypatch.setattr(slicespec, "resolve", None)
        for place in (0, 2, -1, -3):
            np.testing.assert_array_equal(session.run(y, {x: X, i: place}), wanted(X, place))


def test_places_beyond_are_told():
    x, i = tf.placeholder(tf.float32, [5, 4, 3]), tf.placeholder(tf.int32, [])
    with tf.Session() as session:
        for place in (5, -6):
            with pytest.raises(tf.errors.InvalidArgumentError, match=f"slice index {place} of dim"):
                session.run(x[i], {x: X, i: place})


@pytest.mark.parametrize("stop", [0, 2, 9])
def test_lengths_are_resolved(stop):
    x, i = tf.placeholder(tf.float32, [5, 4, 3]), tf.placeholder(tf.int32, [])
    with tf.Session() as session:
        np.testing.assert_array_equal(session.run(x[1:i, i - i], {x: X, i: stop}), X[1:stop, 0])
        np.testing.assert_array_equal(session.run(x[i::-1, 0], {x: X, i: 3}), X[3::-1, 0])


def test_numpy_is_not_asked_for_what_it_has_not(monkeypatch):
    """Whether it traces is asked in every step, and an attribute that is missing takes long."""
    x, i = tf.placeholder(tf.float32, [5, 4, 3]), tf.placeholder(tf.int32, [])
    y = x[i]
    with tf.Session() as session:
        session.run(y, {x: X, i: 0})
        asked = []
        monkeypatch.setattr(np, "__getattr__", lambda name: asked.append(name) or 1)
        session.run(y, {x: X, i: 1})
    assert not asked
