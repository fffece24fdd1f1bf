"""Clusters of sizes that are not known: who gets them, and what backends are promised."""

from __future__ import annotations

import array_api_compat.numpy as xp
import numpy as np
import pytest

import opdock as tf
from opdock import plugin
from opdock.plugin import CLUSTER, OPEN_CLUSTER, KernelTable, codegen
from tests.core.compiler import melder

pytestmark = pytest.mark.usefixtures("on_melder")

ROWS = np.arange(12, dtype=np.float32).reshape(4, 3)


def some_rows(x):
    """Rows of which there are as many as the data say."""
    return tf.boolean_mask(x, x[:, 0] > 1.0)


@pytest.fixture
def opened(monkeypatch):
    """The signatures that the device's kernel gets, which it has from now on."""
    found = []

    def binder(sig):
        found.append(sig)
        return codegen.evaluate(sig.attrs["line"], xp, sig.attrs["names"])

    table = KernelTable(melder.table)
    table.binder(OPEN_CLUSTER)(binder)
    monkeypatch.setattr(melder, "table", table)
    plugin.register(melder, melder.NAME)
    return found


@pytest.fixture
def values():
    return tf.placeholder(tf.float32, [4, 3])


def test_a_backend_without_such_a_kernel_gets_op_by_op(values):
    y = tf.exp(some_rows(values)) * 2.0
    with tf.Session() as session:
        np.testing.assert_allclose(session.run(y, {values: ROWS}), np.exp(ROWS[1:]) * 2)
        found = {row.op for row in session.explain(y, {values: ROWS}).rows}
    assert {"Exp", "Mul"} <= found
    assert not {CLUSTER, OPEN_CLUSTER} & found


def test_a_backend_with_one_gets_what_hangs_together(values, opened):
    y = tf.exp(some_rows(values) + tf.constant([1.0, 2.0, 3.0])) * 2.0
    with tf.Session() as session:
        got = session.run(y, {values: ROWS})
    np.testing.assert_allclose(got, np.exp(ROWS[1:] + [1, 2, 3]) * 2, rtol=1e-6)
    (sig,) = {id(s): s for s in opened if len(s.attrs["members"]) > 1}.values()
    assert [op for _, op in sig.attrs["members"]] == ["AddV2", "Exp", "Mul"]
    assert sig.attrs["shape"] == (None, 3)
    assert sig.in_shapes == ((None, 3), (3,))
    assert sig.out_shapes == ((None, 3),)
    assert sig.attrs["reduces"] == ()


def test_reductions_end_no_open_cluster(values, opened):
    y = tf.reduce_sum(tf.exp(some_rows(values)) * 2.0, 0)
    with tf.Session() as session:
        got = session.run(y, {values: ROWS})
        found = [row.op for row in session.explain(y, {values: ROWS}).rows if row.how != "fused"]
    np.testing.assert_allclose(got, np.exp(ROWS[1:]).sum(0) * 2, rtol=1e-6)
    assert OPEN_CLUSTER in found
    assert "Sum" in found


def test_what_is_known_and_what_is_not_are_never_one(values, opened):
    known = tf.exp(values) * 2.0
    y = [known, tf.exp(some_rows(known)) * 2.0]
    with tf.Session() as session:
        session.run(y, {values: ROWS})
        found = {row.op for row in session.explain(y, {values: ROWS}).rows}
    assert {CLUSTER, OPEN_CLUSTER} <= found
    assert all(None in s for sig in opened for s in sig.out_shapes)
