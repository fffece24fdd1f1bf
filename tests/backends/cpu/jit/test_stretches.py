"""The code of stretches: one piece for steps that are alike, and memory that is used again."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import opdock as tf
from opdock.plugin import STRETCH, NodeSig, codegen, dtypes
from opdock_cpu.jit import objects, stretches
from opdock_cpu.jit.places import Places

F = dtypes.float32


def square(name: str) -> codegen.View:
    return codegen.View(name, (4, 1))


def chain(count: int) -> codegen.Stretch:
    """A matrix that is multiplied with itself again and again."""
    item = codegen.Item(F, (4, 4))
    names = ["x0", *(f"s{i}" for i in range(count - 1)), "y0"]
    stages = tuple(
        codegen.Product((4, 4, 4), square(a), square("x0"), square(b))
        for a, b in itertools.pairwise(names)
    )
    return codegen.Stretch((item,), (item,), (item,) * (count - 1), stages)


def test_steps_that_are_alike_are_one_piece_of_code():
    few, many = (stretches.kinds(chain(n)) for n in (3, 300))
    assert (few[1], many[1]) == ([0] * 3, [0] * 300)
    assert len(few[0]) == len(many[0]) == 1
    codes = [stretches.source("f", chain(n), s) for n, ((s,), _) in ((3, few), (300, many))]
    assert codes[0] == codes[1]


def test_numbers_that_are_equal_and_not_the_same_are_different_code():
    item, view = codegen.Item(dtypes.float64, (2,)), codegen.View("x0", (1,))
    stages = []
    for number in ("0.0", "-0.0"):
        line = codegen.lower([codegen.parse(f"x0 + {number}")], {"x0": dtypes.float64})
        stages.append(codegen.Part((2,), line, (view,), (codegen.View("y0", (1,)),)))
    models, _ = stretches.kinds(codegen.Stretch((item,), (item,), (), tuple(stages)))
    assert len(models) == 2


def test_memory_of_what_nothing_reads_any_more_is_used_again():
    assert Places(chain(300)).scratch == Places(chain(3)).scratch == 2 * 64


@pytest.mark.parametrize("count", [1, 2, 7])
def test_a_chain_of_products(count, monkeypatch):
    monkeypatch.setenv("OPDOCK_JIT", "sync")
    sig = NodeSig(STRETCH, "chain", {"stretch": chain(count), "members": ()})
    call = stretches.stretch(sig)
    x = np.random.default_rng(1).normal(size=(4, 4)).astype(np.float32)
    want = np.linalg.matrix_power(x.astype(np.float64), count + 1)
    place = np.empty((4, 4), np.float32)
    for value in (x, np.asfortranarray(x)):
        np.testing.assert_allclose(call(value, None), want, rtol=1e-4, atol=1e-5)
        assert call(value, place) is place
        np.testing.assert_allclose(place, want, rtol=1e-4, atol=1e-5)
    apart = np.zeros((4, 8), np.float32)[:, ::2]
    call(x, apart)
    np.testing.assert_allclose(apart, want, rtol=1e-4, atol=1e-5)


def test_arrays_are_laid_out_as_code_expects():
    assert objects.why_not() is None


def test_another_layout_of_arrays_is_noticed(monkeypatch):
    monkeypatch.setattr(objects, "_DATA", 24)
    assert "not known" in str(objects.why_not.__wrapped__())
    monkeypatch.setattr(objects, "why_not", objects.why_not.__wrapped__)
    x = tf.placeholder(tf.float32, [4, 4])
    y = [tf.matmul(x, x + float(i)) for i in range(6)]
    with tf.Session() as session:
        rows = session.explain(y, {x: np.eye(4)}).rows
    assert not any(row.op == STRETCH for row in rows)
