"""Updates of a few rows write these alone, and nobody who has read the variable sees it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import opdock as tf
from opdock_cpu.jit.row_updates import RowUpdates

ROWS, WIDTH = 5000, 8
OPTIMIZERS = {
    "sgd": lambda: tf.train.GradientDescentOptimizer(0.5),
    "momentum": lambda: tf.train.MomentumOptimizer(0.5, 0.9),
    "adagrad": lambda: tf.train.AdagradOptimizer(0.5),
    "ftrl": lambda: tf.train.FtrlOptimizer(0.5),
    "rmsprop": lambda: tf.train.RMSPropOptimizer(0.5),
}


@pytest.fixture
def session() -> Iterator[tf.Session]:
    with tf.Graph().as_default(), tf.Session() as opened:
        yield opened


def _buffers(session: Any) -> dict[str, int]:
    cells = session._engine.resources.items("variable")
    return {cell.name: cell.read().ctypes.data for cell in cells if cell.read().size > 1}


def _embedding(resource: bool) -> tuple[Any, Any, Any]:
    table = tf.get_variable(
        "table", [ROWS, WIDTH], use_resource=resource,
        initializer=tf.random_uniform_initializer(-1, 1, seed=3),
    )  # fmt: skip
    ids = tf.placeholder(tf.int32, [None])
    return table, ids, tf.reduce_sum(tf.square(tf.nn.embedding_lookup(table, ids)))


@pytest.mark.parametrize("resource", [False, True])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_table_of_embeddings_stays_where_it_is(session, name, resource) -> None:
    table, ids, loss = _embedding(resource)
    train = OPTIMIZERS[name]().minimize(loss)
    session.run(tf.global_variables_initializer())
    before = session.run(table)
    session.run([train, loss], {ids: [4, 7, 4]})
    where = _buffers(session)
    session.run([train, loss], {ids: [7, 9, 2]})
    # What is read below is held by nobody any more when the next step comes.
    assert _buffers(session) == where
    after = session.run(table)
    changed = np.flatnonzero((before != after).any(axis=1))
    assert changed.tolist() == [2, 4, 7, 9]


@pytest.mark.parametrize("resource", [False, True])
@pytest.mark.parametrize("way", ["traced", "parallel"])
def test_so_it_does_in_steps_that_run_op_by_op(way: str, resource: bool) -> None:
    parallel = way == "parallel"
    config = tf.ConfigProto(
        inter_op_parallelism_threads=2 if parallel else 1, intra_op_parallelism_threads=1
    )
    options = None if parallel else tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
    with tf.Graph().as_default(), tf.Session(config=config) as session:
        _, ids, loss = _embedding(resource)
        train = tf.train.MomentumOptimizer(0.5, 0.9).minimize(loss)
        # What runs the user's code is worth a thread.
        heavy = [
            tf.py_func(lambda x: x, [tf.cast(ids, tf.float32) + float(i)], tf.float32, False)
            for i in range(2 * parallel)
        ]
        session.run(tf.global_variables_initializer())
        found = []
        for _ in range(3):
            metadata = None if parallel else tf.RunMetadata()
            session.run([train, loss, *heavy], {ids: [4, 7]}, options, metadata)
            found.append(_buffers(session)["table"])
        given = {ids: np.array([4, 7], np.int32)}
        assert parallel == (session._program([train, loss, *heavy], given).overlap is not None)
    assert found[1:] == found[:1] * 2


@pytest.mark.parametrize("op", ["scatter_update", "scatter_add", "scatter_nd_update"])
def test_what_was_read_before_an_update_stays(session, op) -> None:
    table = tf.Variable(tf.zeros([ROWS, WIDTH]), use_resource=True)
    before = table.read_value()
    at = [[1]] if "nd" in op else [1]
    with tf.control_dependencies([before]):
        update = getattr(tf, op)(table, at, tf.ones([1, WIDTH]))
    with tf.control_dependencies([update]):
        both = tf.stack([tf.identity(before), table.read_value()])
    session.run(tf.global_variables_initializer())
    old, new = session.run(both)
    assert not old.any()
    assert new.sum() == WIDTH
    held = session.run(before)
    session.run(update)
    assert held.sum() == WIDTH


def _apply(indices: Any, grad: Any, shape: tuple[int, ...] = (4, 2)) -> Any:
    var, accum = tf.Variable(tf.zeros([4, 2])), tf.Variable(tf.zeros(shape))
    indices = tf.placeholder_with_default(np.array(indices, np.int32), None)
    grad = tf.placeholder_with_default(np.array(grad, np.float32), None)
    return tf.raw_ops.SparseApplyAdagrad(
        var=var._ref(), accum=accum._ref(), lr=0.1, grad=grad, indices=indices
    )


@pytest.mark.parametrize(
    ("indices", "grad", "words"),
    [
        ([0, 4], np.ones((2, 2)), "Index 4 at offset 1 in indices is out of range"),
        ([-1], np.ones((1, 2)), "Index -1 at offset 0 in indices is out of range"),
        ([[0]], np.ones((1, 2)), "indices must be one-dimensional"),
        ([0], np.ones((2, 2)), r"got grad.shape \[2,2\], var.shape \[4,2\], indices.shape \[1\]"),
    ],
)
def test_rows_that_do_not_fit(session, indices, grad, words) -> None:
    update = _apply(indices, grad)
    session.run(tf.global_variables_initializer())
    with pytest.raises(tf.errors.InvalidArgumentError, match=words):
        session.run(update)
    assert not session.run(tf.global_variables()[0]).any()


@pytest.mark.parametrize("way", ["dense", "rows"])
def test_weights_that_were_laid_out_are_laid_out_anew(session, way, monkeypatch) -> None:
    """A program that does not train sees each update, however many came since its last step."""
    monkeypatch.setenv("OPDOCK_JIT", "sync")
    shape = (3, 3, 16, 64)
    images = np.random.default_rng(0).normal(size=(2, 8, 8, 16)).astype(np.float32)
    weights = tf.Variable(tf.ones(shape), use_resource=True)
    other = tf.placeholder(tf.float32, shape)
    kept, plain = (tf.nn.conv2d(images, w, [1, 1, 1, 1], "SAME") for w in (weights, other))
    if way == "dense":
        update = tf.train.MomentumOptimizer(0.1, 0.9).apply_gradients([(tf.ones(shape), weights)])
    else:
        update = tf.scatter_add(weights, [1], tf.ones((1, *shape[1:])))
    session.run(tf.global_variables_initializer())
    for _ in range(3):
        session.run(kept)
        session.run(update)
        session.run(update)
        wanted = session.run(plain, {other: session.run(weights)})
        np.testing.assert_allclose(session.run(kept), wanted, rtol=1e-4, atol=1e-4)


def _updated(make: Any, shape: tuple[int, ...], steps: list[np.ndarray]) -> list[np.ndarray]:
    """What steps make of two variables, one of each kind."""
    start = np.random.RandomState(3).randn(*shape).astype(np.float32)
    with tf.Graph().as_default(), tf.Session() as session:
        plain, resource = (
            tf.get_variable(f"v{use}", initializer=start, use_resource=use) for use in (False, True)
        )
        ids = tf.placeholder(steps[0].dtype, [None])
        taken = [tf.nn.embedding_lookup(v, ids) for v in (plain, resource)]
        train = make().minimize(tf.add_n([tf.reduce_sum(t * t + t) for t in taken]))
        session.run(tf.global_variables_initializer())
        for step in steps:
            session.run(train, {ids: step})
        found: list[np.ndarray] = session.run([plain, resource])
        return found


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("shape", [(40,), (40, 3), (5000, 8)])
@pytest.mark.parametrize("name", [n for n in OPTIMIZERS if n != "sgd"])
def test_generated_code_updates_rows_as_the_rule_does(name, shape, index, monkeypatch) -> None:
    monkeypatch.setenv("OPDOCK_JIT", "sync")
    rng = np.random.RandomState(4)
    steps = [rng.randint(0, shape[0], n).astype(index) for n in (20, 1, 0, 33)]
    made = RowUpdates.__call__
    ran = []

    def noted(self: Any, *args: Any) -> bool:
        ran.append(made(self, *args))
        return ran[-1]

    monkeypatch.setattr(RowUpdates, "__call__", noted)
    by_code = _updated(OPTIMIZERS[name], shape, steps)
    assert ran == [True] * 2 * len(steps)
    monkeypatch.setattr(RowUpdates, "writes", lambda sig: False)
    by_rule = _updated(OPTIMIZERS[name], shape, steps)
    for code, rule in zip(by_code, by_rule, strict=True):
        np.testing.assert_allclose(code, rule, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("way", ["code", "rule"])
def test_a_row_that_an_op_names_twice_is_updated_twice(session, way, monkeypatch) -> None:
    monkeypatch.setenv("OPDOCK_JIT", "sync")
    if way == "rule":
        monkeypatch.setattr(RowUpdates, "writes", lambda sig: False)
    var, slot = tf.Variable(tf.ones([4, 2])), tf.Variable(tf.zeros([4, 2]))
    update = tf.raw_ops.SparseApplyMomentum(
        var=var._ref(), accum=slot._ref(), lr=1.0, grad=tf.ones([2, 2]), indices=[1, 1],
        momentum=0.5,
    )  # fmt: skip
    session.run(tf.global_variables_initializer())
    session.run(update)
    np.testing.assert_array_equal(session.run(slot)[:2], [[0, 0], [1.5, 1.5]])
    np.testing.assert_array_equal(session.run(var)[:2], [[1, 1], [-1.5, -1.5]])
