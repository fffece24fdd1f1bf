"""Einsum: every kind of equation against NumPy, unknown shapes, gradients, errors."""

from __future__ import annotations

import string

import numpy as np
import pytest

import opdock as tf
from opdock.ops.einsum import einsum_op

EQUATIONS = [
    ("ij,jk->ik", (2, 3), (3, 4)), ("ij,jk", (2, 3), (3, 4)), ("ij,kj->ik", (2, 3), (4, 3)),
    ("ji,jk->ki", (3, 2), (3, 4)), ("ij->ji", (2, 3)), ("ij->", (2, 3)), ("ij->j", (2, 3)),
    ("ii", (3, 3)), ("ii->", (3, 3)), ("ii->i", (3, 3)), ("iij->ij", (3, 3, 2)),
    ("ijji", (2, 3, 3, 2)), ("i,j->ij", (2,), (3,)),
    ("i,i->", (4,), (4,)), ("i,i->i", (4,), (4,)), ("ij,ij->ij", (2, 3), (2, 3)),
    ("bij,bjk->bik", (2, 3, 4), (2, 4, 5)), ("bij,bjk->kbi", (2, 3, 4), (2, 4, 5)),
    ("abc,cd,de->abe", (2, 3, 4), (4, 5), (5, 2)), ("bhqd,bhkd->bhqk", (2, 3, 4, 5), (2, 3, 6, 5)),
    ("bqhd,bkhd->bhqk", (2, 4, 3, 5), (2, 6, 3, 5)), ("...ij,jk->...ik", (2, 5, 3, 4), (4, 2)),
    ("...i,...i->...", (2, 3, 4), (3, 4)), ("i...,i...->...", (3, 1, 2), (3, 4, 2)),
    ("abcd,abcd->ad", (2, 3, 4, 5), (2, 3, 4, 5)), ("a,b,c->cab", (2,), (3,), (4,)),
    ("xYz,zY->x", (2, 3, 4), (4, 3)), ("ij,j,k->ik", (2, 3), (3,), (4,)), ("ba,b->", (3, 2), (3,)),
]  # fmt: skip


def run(fetch, feeds=None):
    with tf.Session() as session:
        return session.run(fetch, feeds)


def arrays(shapes):
    rng = np.random.default_rng(0)
    return [rng.standard_normal(s) for s in shapes]


@pytest.mark.parametrize(("equation", "shapes"), [(e, s) for e, *s in EQUATIONS])
@pytest.mark.parametrize("known", [True, False])
def test_values_and_gradients(equation, shapes, known):
    values = arrays(shapes)
    wanted = np.einsum(equation, *values)
    inputs = [tf.placeholder(tf.float64, s if known else [None] * len(s)) for s in shapes]
    out = tf.einsum(equation, *inputs)
    weights = np.random.default_rng(1).standard_normal(wanted.shape)
    gradients = tf.gradients(out, inputs, grad_ys=tf.constant(weights))
    result, *slopes = run([out, *gradients], dict(zip(inputs, values, strict=True)))
    np.testing.assert_allclose(result, wanted, rtol=1e-10, atol=1e-12)
    if known:
        assert out.shape.as_list() == list(wanted.shape)
    for i, slope in enumerate(slopes):
        step = np.random.default_rng(2).standard_normal(values[i].shape)
        moved = np.einsum(equation, *values[:i], step, *values[i + 1 :])
        np.testing.assert_allclose(
            (slope * step).sum(), (weights * moved).sum(), rtol=1e-9, atol=1e-9
        )


@pytest.mark.parametrize(("equation", "shapes"), [(e, s) for e, *s in EQUATIONS if "->" in e])
def test_the_op_and_its_gradient(equation, shapes):
    values = arrays(shapes)
    inputs = [tf.constant(v) for v in values]
    out = einsum_op(inputs, equation=equation)
    assert out.op.type == "Einsum" and out.shape.as_list() == list(
        np.einsum(equation, *values).shape
    )
    np.testing.assert_allclose(run(out), np.einsum(equation, *values), rtol=1e-10, atol=1e-12)
    for got, want in zip(
        run(tf.gradients(out, inputs)),
        run(tf.gradients(tf.einsum(equation, *inputs), inputs)),
        strict=True,
    ):
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-9)


def test_products_need_no_transposes(graph):
    a, b = tf.zeros([2, 3]), tf.zeros([4, 3])
    tf.einsum("ij,kj->ik", a, b)
    types = [op.type for op in graph.get_operations()]
    assert "Transpose" not in types and "Reshape" not in types and types.count("MatMul") == 1


def test_names_and_scope():
    assert tf.einsum("ij->ji", tf.zeros([2, 3]), name="turn").op.name.startswith("turn/")
    assert tf.einsum("ij,jk->ik", tf.zeros([2, 3]), tf.zeros([3, 2])).op.name == "einsum/MatMul"


def test_errors():
    x = tf.zeros([2, 2])
    cases = [
        ("ij,jk->il", (x, x), "Output subscripts contain the label l not present in the input"),
        ("ij,jk->ik", (x,), "Expected 2 arguments for equation"),
        ("ij,jk->iik", (x, x), "repeat a label"),
        ("i1->i", (x,), "Invalid subscripts"),
        ("ijk->i", (x,), "Expected an input of rank 3"),
        (
            "ij,jk->ik",
            (x, tf.zeros([3, 2])),
            "Expected dimension 2 for label j but got dimension 3",
        ),
        ("...i->i", (x,), "drops the dimensions of its ellipsis"),
        (
            f"...{string.ascii_lowercase},...{string.ascii_uppercase}",
            (tf.zeros([1] * 27),) * 2,
            "too many distinct labels",
        ),
        ("...i->...i", (tf.placeholder(tf.float32),), "needs an input of known rank"),
    ]
    for equation, inputs, message in cases:
        with pytest.raises(ValueError, match=message):
            tf.einsum(equation, *inputs)
    with pytest.raises(TypeError, match="invalid keyword arguments for this function: axis"):
        tf.einsum("ij->ji", x, axis=0)
