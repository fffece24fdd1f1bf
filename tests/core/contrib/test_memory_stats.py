"""`tf.contrib.memory_stats`: what devices say of their memory, and what they do not."""

from __future__ import annotations

import pytest

import opdock as tf

stats = tf.contrib.memory_stats


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default():
        yield


def test_the_machine_has_the_memory_that_the_device_is_listed_with() -> None:
    with tf.device("/device:CPU:0"):
        limit = stats.BytesLimit()
    assert limit.dtype == tf.int64 and limit.shape.as_list() == []
    with tf.Session() as session:
        (listed,) = (d for d in session.list_devices() if d.device_type == "CPU")
        assert session.run(limit) == listed.memory_limit_bytes > 0


@pytest.mark.parametrize("made", [stats.BytesInUse, stats.MaxBytesInUse])
def test_what_is_not_kept_is_told(made) -> None:
    with tf.device("/device:CPU:0"):
        asked = made()
    with (
        tf.Session() as session,
        pytest.raises(tf.errors.UnimplementedError, match="keeps no account of its memory"),
    ):
        session.run(asked)


@pytest.mark.parametrize("index", [0, 1])
def test_a_device_without_kernels_for_it_is_asked_too(index: int) -> None:
    where = f"/device:ECHO:{index}"
    with tf.device(where):
        asked = stats.BytesLimit()
    with (
        tf.Session() as session,
        pytest.raises(tf.errors.UnimplementedError, match=f"{where} keeps no account"),
    ):
        session.run(asked)
