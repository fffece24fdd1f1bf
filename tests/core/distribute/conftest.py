"""What the tests of strategies share: two CPUs, a graph, and a regression."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf

TWO = ("/cpu:0", "/cpu:1")


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as made:
        yield made


@pytest.fixture
def session():
    """Sessions that find two CPUs."""

    def make():
        return tf.Session(config=tf.ConfigProto(device_count={"CPU": 2}))

    return make


@pytest.fixture
def rows():
    x = np.random.RandomState(0).randn(32, 3).astype(np.float32)
    return x, x.sum(1, keepdims=True)
