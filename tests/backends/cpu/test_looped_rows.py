"""Rows that are merged, divided and drawn by generated loops are those that NumPy makes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import opdock as tf
from opdock_cpu import rejection
from opdock_cpu.jit.looped import Looped
from opdock_cpu.kernels.random_dist import _Draws, _gamma, _poisson
from opdock_cpu.philox import Philox
from tests.backends.cpu.looped import given

RNG = np.random.default_rng(5)
KEY, COUNTER = 0x9123456789ABCDEF, 0xFEDCBA9876543210 << 64 | (1 << 64) - 3
"""A counter whose low half runs over."""


@pytest.mark.parametrize("operation", ["a-b", "b-a", "intersection", "union"])
@pytest.mark.parametrize("dtype", [np.int8, np.int64])
def test_sets(both: Any, operation: str, dtype: Any) -> None:
    a, b = (RNG.integers(-9, 9, (4, 6, n)).astype(dtype) for n in (7, 5))
    # Rows without values, values in no order, and repeated ones.
    kept = np.flatnonzero(RNG.random(b.size) < 0.4)
    indices, values = np.stack(np.unravel_index(kept, b.shape), 1), b.reshape(-1)[kept]
    name = {"a-b": "difference", "b-a": "difference"}.get(operation, operation)

    def build() -> Any:
        found = []
        sparse = tf.SparseTensor(given(indices), given(values), b.shape)
        for pair in ((given(a), given(b)), (given(a), sparse), (sparse, sparse)):
            words = {"aminusb": operation == "a-b"} if name == "difference" else {}
            found.append(getattr(tf.sets, f"set_{name}")(*pair, **words))
        return [part for s in found for part in (s.indices, s.values, s.dense_shape)]

    pair = both(build, "_merge")
    for found, wanted in zip(*pair, strict=True):
        assert found.dtype == wanted.dtype
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("width", [1, 3, 130])
def test_rows_of_a_variable_are_divided_one_after_the_other(both: Any, width: int) -> None:
    table, rows = (RNG.normal(size=(n, width)).astype(np.float32) + 3 for n in (9, 40))
    at = RNG.integers(0, 9, 40)

    def build() -> Any:
        variable = tf.get_variable("v", initializer=table, use_resource=True)
        with tf.control_dependencies([tf.assign(variable, given(table))]):
            change = tf.scatter_div(variable, given(at), given(rows))
        return [tf.convert_to_tensor(change)]

    ((found,), (wanted,)) = both(build, "_divided")
    np.testing.assert_array_equal(found, wanted)


GAMMA = (1e-3, 0.3, 0.999, 1.0, 1.001, 11.0, 1e5, 1e12)
POISSON = (0.0, 1e-9, 0.3, 9.99, 10.0, 55.5, 1e5)


@pytest.mark.parametrize(
    ("drawn", "plain", "choices"),
    [(rejection.gamma, _gamma, GAMMA), (rejection.poisson, _poisson, POISSON)],
)
def test_rejection_takes_the_same_numbers_as_numpy(
    monkeypatch: pytest.MonkeyPatch, drawn: Any, plain: Any, choices: tuple[float, ...]
) -> None:
    monkeypatch.setenv("OPDOCK_JIT", "sync")
    values = RNG.choice(choices, 9000)
    found = drawn(KEY, COUNTER, values)
    monkeypatch.setattr(Looped, "__call__", lambda *args, **words: False)
    assert found is not None and drawn(KEY, COUNTER, values) is None
    wanted = plain(_Draws(Philox(KEY, COUNTER), len(values)), values)
    np.testing.assert_allclose(found, wanted, rtol=1e-11)


@pytest.mark.parametrize(("loop", "choices"), [("_gamma", GAMMA), ("_poisson", POISSON)])
def test_rejection_is_the_function_that_it_is_made_of(
    monkeypatch: pytest.MonkeyPatch, loop: str, choices: tuple[float, ...]
) -> None:
    monkeypatch.setenv("OPDOCK_JIT", "sync")
    values = RNG.choice(choices, 50)
    drawn = getattr(rejection, loop.removeprefix("_"))
    # As many as it takes for code to be asked for.
    found = drawn(KEY, COUNTER, np.tile(values, 180))[:50]
    place, out = rejection._words(KEY, COUNTER).tolist(), np.empty(50)
    limits = () if loop == "_gamma" else (np.exp(-values).tolist(),)
    getattr(rejection, loop)(0, 50, out, values.tolist(), *limits, place)
    np.testing.assert_allclose(found, out, rtol=1e-11, atol=1e-300)


def test_shapes_and_rates_that_are_none_give_nan() -> None:
    bad = np.array([-1.0, np.nan, 2.0], np.float32)
    with tf.Graph().as_default(), tf.Session() as session:
        gamma = session.run(tf.random_gamma([9000], tf.constant(bad), seed=1))
        poisson = session.run(tf.random_poisson(tf.constant(bad), [9000], seed=1))
    for found in (gamma, poisson):
        np.testing.assert_array_equal(np.isnan(found).all(axis=0), [True, True, False])
        assert not np.isnan(found[:, 2]).any()


def test_few_blocks_are_those_of_many() -> None:
    places = np.array([0, 1, 2, 3, 1 << 40])
    few = Philox(KEY, COUNTER).blocks_at(places)
    many = Philox(KEY, COUNTER).blocks_at(np.tile(places, 20))[:5]
    np.testing.assert_array_equal(few, many)
