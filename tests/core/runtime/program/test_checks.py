"""What the checks cost a device: a download for each kind of copy, not for each copy."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import opdock as tf
import opdock.plugin as api

table = api.KernelTable()
log: list[str] = []


class Buffer(np.ndarray):
    pass


class Device(api.BaseDevice):
    broken = False

    def upload(self, array: Any) -> Any:
        log.append("upload")
        return np.array(array).view(Buffer)

    def download(self, buffer: Any) -> Any:
        log.append("download")
        array = np.array(buffer, subok=False)
        return array.T if type(self).broken else array


def probe() -> api.Probe:
    return api.Probe(devices=(api.DeviceAttributes(index=0),))


@table.binder("AddV2")
def add(sig: Any) -> Any:
    return np.add


@api.hookimpl
def opdock_backends() -> Iterator[api.BackendSpec]:
    yield api.BackendSpec(
        name="counting", device_type="COUNTING", own_type="COUNTING", api=(1, 0), priority=-50,
        probe=f"{__name__}:probe", device=f"{__name__}:Device",
        kernels=(f"{__name__}:table",), automatic=False,
    )  # fmt: skip


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setenv("OPDOCK_CHECK", "1")
    api.register(sys.modules[__name__], "counting-for-tests")
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, name="x")
        with tf.device("/device:COUNTING:0"):
            tf.raw_ops.AddV2(x=x, y=x, name="y")
        with tf.Session(graph=graph) as made:
            yield made
    api.unregister("counting-for-tests")


def step(session: Any, *shape: int) -> list[str]:
    """What a step asks of the device."""
    log.clear()
    got = session.run("y:0", {"x:0": np.ones(shape, np.float32)})
    np.testing.assert_array_equal(got, np.full(shape, 2, np.float32))
    return list(log)


def test_one_copy_of_a_kind_is_downloaded_again(session: Any) -> None:
    step(session, 2, 3)  # and what the device's buffers are
    assert step(session, 2, 3) == ["upload", "download"]
    assert step(session, 4, 5).count("download") == 2
    assert step(session, 4, 5) == ["upload", "download"]


def test_each_kind_is(session: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    step(session, 2, 3)
    monkeypatch.setattr(Device, "broken", True)
    with pytest.raises(tf.errors.InternalError, match=r"has shape \[7,6\], expected \[6,7\]"):
        step(session, 6, 7)
    # What failed is looked at again.
    with pytest.raises(tf.errors.InternalError, match="once it is downloaded again"):
        step(session, 6, 7)


def test_constants_are_folded_by_checked_kernels(session):
    """Those of the host, whatever device the node is for."""
    with tf.Graph().as_default(), tf.Session() as sess:
        folded = tf.matmul(tf.ones([2, 3]), tf.ones([3, 2])) + tf.zeros([2])
        assert sess.run(folded).tolist() == [[3.0, 3.0], [3.0, 3.0]]
        assert [row.how for row in sess.explain(folded).rows if row.op == "MatMul"] == ["removed"]
