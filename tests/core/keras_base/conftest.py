"""tf.keras in a graph of the test's own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import opdock as tf
from opdock.graph.nodes import default_session

KERAS_SESSIONS: list[Any] = []


@pytest.fixture
def keras() -> Iterator[Any]:
    """A graph, and tf.keras with a session of it, which other tests' checkpoints do not get."""
    providers = default_session._providers
    assert tf.keras.layers.Dense  # it is loaded
    KERAS_SESSIONS.extend(providers)
    providers[:] = KERAS_SESSIONS[:1]
    with tf.Graph().as_default():
        yield tf.keras
    providers.clear()
