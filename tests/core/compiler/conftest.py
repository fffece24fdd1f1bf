"""A fresh graph for each test, and a look at what the compiler made."""

from __future__ import annotations

import pytest

import opdock as tf
from opdock import plugin
from tests.core.compiler import melder


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as made:
        yield made


@pytest.fixture
def compiled():
    """(session, fetches, feed_dict) to the bound program."""

    def get(session, fetches, feed_dict=None):
        plan = session._plan(fetches)
        values, key = session._feeds(feed_dict)
        return (plan.programs.get(key) or session._entry(plan, values, key)).program

    return get


@pytest.fixture
def meld():
    """The device scope of a backend with fusions and clusters; its module is `melder`."""
    melder.reset()
    plugin.register(melder, melder.NAME)
    yield melder.DEVICE
    plugin.unregister(melder.NAME)
