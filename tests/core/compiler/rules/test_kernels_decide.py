"""A rule whose op has no kernel where the node would run does not apply."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import array_api_compat.numpy
import numpy as np
import pytest

import opdock as tf
from opdock.plugin import (
    NUMBERS,
    BackendSpec,
    BaseDevice,
    DeviceAttributes,
    Probe,
    dtypes,
    hookimpl,
    register,
    unregister,
)

LACKING = ("Sub", "Reciprocal", "NotEqual")


class Lacking(BaseDevice):
    """A device without some of the ops that rules make of others."""

    namespace = array_api_compat.numpy
    dtypes = NUMBERS - {dtypes.bfloat16} | {dtypes.bool}
    refuses = dict.fromkeys(LACKING, "it does without")

    def upload(self, array: np.ndarray) -> np.ndarray:
        return np.array(array, order="C")

    def download(self, buffer: np.ndarray) -> np.ndarray:
        return np.array(buffer, order="C")


@hookimpl
def opdock_backends() -> Iterator[BackendSpec]:
    yield BackendSpec(
        name="lacking", device_type="LACKING", own_type="LACKING", api=(1, 1), priority=-50,
        probe=f"{__name__}:probe", device=f"{__name__}:Lacking", kernels=(),
    )  # fmt: skip


def probe() -> Probe:
    return Probe(devices=[DeviceAttributes(index=0)])


@pytest.fixture
def lacking() -> Iterator[None]:
    register(sys.modules[__name__], "lacking")
    yield
    unregister("lacking")


PROGRAMS = {
    "Sub": (lambda x: -x + 3.0, "AddV2"),
    "Reciprocal": (lambda x: x**-1.0, "Pow"),
    "NotEqual": (lambda x: tf.logical_not(tf.equal(x, 2.0)), "LogicalNot"),
}


@pytest.mark.parametrize("absent", LACKING)
def test_what_was_written_runs_there(lacking, absent):
    make, written = PROGRAMS[absent]
    feed = np.array([1.0, 2.0], np.float32)

    def run(device):
        with tf.Graph().as_default(), tf.device(device):
            x = tf.placeholder(tf.float32, [2])
            y = make(x)
            with tf.Session() as sess:  # without soft placement
                ops = {row.op for row in sess.explain(y, {x: feed}).rows}
                members = {m for row in sess.explain(y, {x: feed}).rows for m in row.members}
                return sess.run(y, {x: feed}), ops, members

    there, ops, members = run("/device:LACKING:0")
    here, _, _ = run("/cpu:0")
    np.testing.assert_array_equal(there, here)
    assert written in ops and absent not in ops, (ops, members)
