"""A fresh graph for each test, and a look at what the compiler made."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf
from opdock import plugin
from tests.core.compiler import melder


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as made:
        yield made


@pytest.fixture
def on_melder(meld):
    with tf.device(meld):
        yield


@pytest.fixture
def clusters_alone(on_melder, monkeypatch):
    """Elementwise ops are gathered, and no pattern of a backend's comes before."""
    monkeypatch.setenv("OPDOCK_DISABLE_PASSES", "fuse")


@pytest.fixture
def x():
    return tf.placeholder(tf.float32, [2, 3], name="x")


@pytest.fixture
def compiled():
    """(session, fetches, feed_dict) to the bound program."""

    def get(session, fetches, feed_dict=None):
        return session._program(fetches, feed_dict)

    return get


@pytest.fixture
def fused(compiled, monkeypatch):
    """The nodes of a fused program, whose results are checked to have the bits of unfused ones."""

    def find(fetches, feeds, setup=None):
        values, programs = [], []
        for off in ("fuse,cluster", "fuse"):
            monkeypatch.setenv("OPDOCK_DISABLE_PASSES", off)
            with tf.Session() as session:
                if setup is not None:
                    session.run(setup)
                values.append(session.run(fetches, feeds))
                programs.append(compiled(session, fetches, feeds).block.nodes)
        many = isinstance(fetches, list)
        for a, b in zip(*(v if many else [v] for v in values), strict=True):
            assert a.dtype == b.dtype
            np.testing.assert_array_equal(a, b)
        without, nodes = programs
        assert not melder.clusters(without)
        return nodes

    return find


@pytest.fixture
def clusters(fused):
    """The clusters of a fused program, checked in the same way."""

    def find(fetches, feeds, setup=None):
        return melder.clusters(fused(fetches, feeds, setup))

    return find


@pytest.fixture
def meld():
    """The device scope of a backend with fusions and clusters; its module is `melder`."""
    melder.reset()
    plugin.register(melder, melder.NAME)
    yield melder.DEVICE
    plugin.unregister(melder.NAME)
