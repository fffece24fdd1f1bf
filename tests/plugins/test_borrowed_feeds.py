"""A device may compute on what is fed where it lies; what outlasts the step is a copy."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any, Final

import array_api_compat.numpy
import numpy as np
import pytest

import opdock as tf
from opdock.plugin import (
    BackendSpec,
    BaseDevice,
    DeviceAttributes,
    Probe,
    hookimpl,
    register,
    unregister,
)
from opdock.plugins.manager import get_manager

LENT: Final[list[np.ndarray[Any, Any]]] = []


class Lender(BaseDevice):
    """NumPy's arrays, and fed ones as they are."""

    namespace = array_api_compat.numpy

    def upload(self, array: np.ndarray[Any, Any]) -> Any:
        return np.array(array)

    def borrow(self, array: np.ndarray[Any, Any]) -> Any:
        LENT.append(array)
        return array

    def download(self, buffer: Any) -> Any:
        return np.array(buffer)


@pytest.fixture(autouse=True)
def _plugin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    made: Any = ModuleType("lender")

    @hookimpl
    def opdock_backends() -> Iterator[BackendSpec]:
        yield BackendSpec(
            name="lender", device_type="LENDER", own_type="LENDER", api=(1, 0), priority=-50,
            probe="lender:probe", device="lender:device",
        )  # fmt: skip

    made.opdock_backends, made.device = opdock_backends, Lender
    made.probe = lambda: Probe(devices=(DeviceAttributes(index=0),))
    monkeypatch.setitem(sys.modules, "lender", made)
    register(made, "lender")
    LENT.clear()
    yield
    unregister("lender")
    get_manager().close()


@pytest.fixture
def session() -> Iterator[tf.Session]:
    with tf.Graph().as_default(), tf.device("/device:LENDER:0"), tf.Session() as found:
        yield found


def test_what_is_fed_is_lent(session: tf.Session) -> None:
    x = tf.placeholder(tf.float32, [3])
    fed = np.array([1, 2, 3], np.float32)
    assert session.run(tf.tanh(x) * x, {x: fed}).shape == (3,)
    assert any(np.shares_memory(one, fed) for one in LENT)
    assert fed.tolist() == [1, 2, 3]


def test_a_result_that_is_what_was_fed_is_a_copy(session: tf.Session) -> None:
    x = tf.placeholder(tf.float32, [4])
    fed = np.arange(4, dtype=np.float32)
    for result in session.run([tf.reshape(x, [2, 2]), tf.identity(x)], {x: fed}):
        assert not np.shares_memory(result, fed)


@pytest.mark.parametrize("use_resource", [False, True])
def test_a_variable_has_a_copy_of_what_it_is_assigned(
    session: tf.Session, use_resource: bool
) -> None:
    x = tf.placeholder(tf.float32, [3])
    variable = tf.get_variable("v", [3], use_resource=use_resource)
    fed = np.array([1, 2, 3], np.float32)
    session.run(variable.assign(x), {x: fed})
    fed[:] = -1
    assert session.run(variable).tolist() == [1, 2, 3]
    session.run(variable.assign_add([1.0, 1.0, 1.0]))
    assert fed.tolist() == [-1, -1, -1]


def test_the_turns_of_a_loop_begin_with_a_copy(session: tf.Session) -> None:
    x = tf.placeholder(tf.float32, [3])
    fed = np.array([1, 2, 3], np.float32)
    _, out = tf.while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, v + v), (tf.constant(0), x))
    assert session.run(out, {x: fed}).tolist() == [8, 16, 24]
    assert fed.tolist() == [1, 2, 3]
