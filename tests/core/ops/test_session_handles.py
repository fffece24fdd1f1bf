"""Tensors that stay in a session: kept, fed, deleted."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

import opdock as tf


@pytest.fixture
def session() -> Any:
    with tf.Graph().as_default(), tf.Session() as session:
        yield session


def test_a_handle_has_the_value_and_goes_into_later_steps(session: Any) -> None:
    handle = session.run(tf.get_session_handle(tf.constant([1.0, 2.0]) * 3.0))
    assert handle.eval().tolist() == [3.0, 6.0]
    assert str(handle) == handle.handle
    holder, kept = tf.get_session_tensor(handle.handle, tf.float32)
    grown = tf.get_session_handle(kept + 1.0)
    for _ in range(3):
        handle = session.run(grown, {holder: handle.handle})
    assert handle.eval().tolist() == [6.0, 9.0]
    assert session.run(kept * 2.0, {holder: handle}).tolist() == [12.0, 18.0]


def test_a_handle_is_fed_in_the_place_of_any_tensor(session: Any) -> None:
    x = tf.constant(1.0)
    y = x * 2.0
    handle = session.run(tf.get_session_handle(tf.constant(5.0)))
    assert session.run(y, {x: handle}) == 10.0


def test_a_value_goes_with_its_handle_or_when_it_is_deleted(session: Any) -> None:
    fetch = tf.get_session_handle(tf.constant(np.ones(4)))
    text = session.run(fetch).handle
    gc.collect()
    holder, kept = tf.get_session_tensor(text, tf.float64)
    with pytest.raises(tf.errors.InvalidArgumentError, match="is not in the session store"):
        session.run(kept, {holder: text})
    handle = session.run(fetch)
    raw = handle.get_raw_handle()
    with pytest.raises(TypeError, match="may have already been deleted"):
        handle.eval()
    assert session.run(kept, {holder: raw}).tolist() == [1.0] * 4
    holder, forget = tf.delete_session_tensor(raw)
    session.run(forget, {holder: raw})
    with pytest.raises(tf.errors.InvalidArgumentError, match="is not in the session store"):
        session.run(forget, {holder: raw})
    with pytest.raises(TypeError, match="must be of type Tensor"):
        tf.get_session_handle(3.0)


def test_the_type_that_is_asked_for_is_checked(session: Any) -> None:
    handle = session.run(tf.get_session_handle(tf.constant(1.0)))
    holder, kept = tf.get_session_tensor(handle.handle, tf.int32)
    with pytest.raises(tf.errors.InvalidArgumentError, match="Type mismatch"):
        session.run(kept, {holder: handle.handle})
