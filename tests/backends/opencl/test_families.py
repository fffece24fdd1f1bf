"""What the conformance suite cannot say of the kernels: large shapes, vectors, shared streams."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import opdock as tf
from opdock.ops.composed.staging import StagingArea
from opdock.plugin import CLUSTER, NodeSig, dtypes

pytestmark = pytest.mark.usefixtures("opencl")

DEVICE = "/device:OPENCL:0"


def _run(build: Any, *arrays: Any, device: str = DEVICE) -> Any:
    with tf.Graph().as_default(), tf.device(device):
        fed = [tf.placeholder(a.dtype, a.shape) for a in arrays]
        result = build(*fed)
        with tf.Session(config=tf.ConfigProto(allow_soft_placement=False)) as session:
            return session.run(result, dict(zip(fed, arrays, strict=True)))


@pytest.mark.parametrize("axis", [None, 0, 1, 2, (0, 2)])
@pytest.mark.parametrize("reduce", ["sum", "mean", "max", "min"])
def test_a_cluster_ends_in_a_reduction(axis: Any, reduce: str) -> None:
    rng = np.random.default_rng(0)
    x, b = rng.random((30, 40, 50), np.float32), rng.random((40, 1), np.float32)
    fold = getattr(tf, f"reduce_{reduce}")
    with tf.Graph().as_default(), tf.device(DEVICE):
        fed = tf.placeholder(tf.float32, x.shape), tf.placeholder(tf.float32, b.shape)
        y = fold(tf.tanh(fed[0] * fed[1]) * 2 - 1, axis=axis)
        feed = dict(zip(fed, (x, b), strict=True))
        with tf.Session() as session:
            assert CLUSTER in [row.op for row in session.explain(y, feed).rows]
            got = session.run(y, feed)
    whole = np.tanh(x.astype(np.float64) * b) * 2 - 1
    np.testing.assert_allclose(got, getattr(np, reduce)(whole, axis=axis), 1e-4, 1e-4)


@pytest.mark.parametrize(("shape", "axis"), [((100_000,), 0), ((3, 5_000), 1), ((7_000, 5), 0)])
@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
def test_long_lines_are_scanned_in_stretches(
    shape: tuple[int, ...], axis: int, exclusive: bool, reverse: bool
) -> None:
    x = np.random.default_rng(1).random(shape)
    got = _run(lambda v: tf.cumsum(v, axis, exclusive=exclusive, reverse=reverse), x)
    turned = np.flip(x, axis) if reverse else x
    total = np.cumsum(turned, axis)
    total = total - turned if exclusive else total
    np.testing.assert_allclose(got, np.flip(total, axis) if reverse else total, 1e-9, 1e-9)


@pytest.mark.parametrize("n", [1, 2, 33])
def test_eigenvectors_belong_to_their_values(n: int) -> None:
    a = np.random.default_rng(2).standard_normal((3, n, n))
    a = a + a.transpose(0, 2, 1)
    values, vectors = _run(tf.self_adjoint_eig, a)
    np.testing.assert_allclose(values, np.linalg.eigvalsh(a), 1e-10, 1e-10)
    np.testing.assert_allclose(a @ vectors, vectors * values[:, None, :], atol=1e-10)
    np.testing.assert_allclose(vectors.transpose(0, 2, 1) @ vectors, [np.eye(n)] * 3, atol=1e-10)


@pytest.mark.parametrize(("m", "n"), [(4, 3), (3, 4), (1, 6), (30, 20)])
@pytest.mark.parametrize("rank", ["full", "one", "none"])
@pytest.mark.parametrize("whole", [False, True])
def test_singular_vectors_are_orthonormal_at_any_rank(
    m: int, n: int, rank: str, whole: bool
) -> None:
    a = np.random.default_rng(3).standard_normal((2, m, n))
    if rank != "full":
        a = a[:, :, :1] * a[:, :1, :] * (rank == "one")
    s, u, v = _run(lambda x: tf.svd(x, full_matrices=whole), a)
    k = min(m, n)
    np.testing.assert_allclose(s, np.linalg.svd(a, compute_uv=False), 1e-10, 1e-10)
    back = u[..., :k] * s[:, None, :] @ v[..., :k].transpose(0, 2, 1)
    np.testing.assert_allclose(back, a, atol=1e-10)
    for w in (u, v):
        eye = [np.eye(w.shape[-1])] * 2
        np.testing.assert_allclose(w.transpose(0, 2, 1) @ w, eye, atol=1e-10)


@pytest.mark.parametrize("n", [100, 150])
def test_systems_larger_than_a_group(n: int) -> None:
    rng = np.random.default_rng(4)
    a, b = rng.standard_normal((2, n, n)) + 4 * np.eye(n), rng.standard_normal((2, n, 3))
    np.testing.assert_allclose(_run(tf.matrix_solve, a, b), np.linalg.solve(a, b), 1e-8, 1e-8)
    sign, log = _run(tf.linalg.slogdet, a)
    np.testing.assert_allclose(sign, np.linalg.slogdet(a)[0])
    np.testing.assert_allclose(log, np.linalg.slogdet(a)[1])
    gram = a @ a.transpose(0, 2, 1)
    np.testing.assert_allclose(_run(tf.cholesky, gram), np.linalg.cholesky(gram), 1e-8, 1e-8)


def test_places_that_no_window_explains_are_scattered() -> None:
    from opdock.plugin import find_op

    x, grad = np.zeros((2, 4, 4, 1), np.float32), np.arange(8, dtype=np.float32)
    places = np.full((2, 2, 2, 1), 15, np.int64)
    op = find_op("MaxPoolGradWithArgmax")
    window = {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "VALID"}
    got = _run(lambda *a: op(*a, **window), x, grad.reshape(2, 2, 2, 1), places)
    expected = np.zeros((2, 16))
    expected[:, 15] = grad.reshape(2, 4).sum(1)
    np.testing.assert_array_equal(got.reshape(2, 16), expected)


class _Session:
    """The part of a session's resources that random ops use."""

    def __init__(self) -> None:
        self._states: dict[str, Any] = {}

    def node_state(self, name: str, start: Any) -> Any:
        if name not in self._states:
            self._states[name] = start()
        return self._states[name]


@pytest.mark.parametrize("op", ["RandomUniform", "RandomStandardNormal"])
def test_a_node_that_moves_goes_on_in_its_stream(op: str, opencl: Any) -> None:
    from opdock_ckernels.families.random import table as on_opencl
    from opdock_cpu.kernels.random import table as on_cpu

    def draw(kernels: Any, session: _Session, device: Any) -> Any:
        (kernel,) = (k for k in kernels if k.op == op)
        attrs = {"seed": 3, "seed2": 4, "dtype": dtypes.float32}
        sig = NodeSig(
            op, "draw", attrs, [(1,)], [dtypes.int32], [(5,)], [dtypes.float32],
            device=device, resources=session,
        )  # fmt: skip
        found = kernel.bind(sig)(np.array([5]))
        return found if device is None else device.download(found)

    stays, moves = _Session(), _Session()
    expected = [draw(on_cpu, stays, None) for _ in range(3)]
    got = [draw(*args) for args in (
        (on_cpu, moves, None), (on_opencl, moves, opencl), (on_cpu, moves, None),
    )]  # fmt: skip
    np.testing.assert_array_equal(got, expected)
    assert not np.array_equal(got[0], got[1])


def test_a_shuffle_has_the_same_order_on_every_device() -> None:
    x = np.arange(1000, dtype=np.float32).reshape(500, 2)
    got = [_run(lambda v: tf.random_shuffle(v, seed=5), x, device=d) for d in (DEVICE, "/cpu:0")]
    np.testing.assert_array_equal(got[0], got[1])
    assert not np.array_equal(got[0], x)


def test_what_is_staged_stays_on_the_device() -> None:
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [4])
        with tf.device(DEVICE):
            area = StagingArea([tf.float32], shapes=[[4]], capacity=1)
            put, (y,) = area.put([tf.exp(x)]), area.get()
            z = tf.log(y)
        with tf.Session(config=tf.ConfigProto(allow_soft_placement=False)) as session:
            session.run(put, {x: [0.0] * 4})
            fetches, feed = [put, z], {x: [1.0] * 4}
            told = session.explain(fetches, feed).rows
            np.testing.assert_allclose(session.run(fetches, feed)[1], [0] * 4, atol=1e-6)
            np.testing.assert_allclose(session.run(fetches, feed)[1], [1] * 4, rtol=1e-6)
    # What is fed goes up, what is fetched comes down, and nothing in between does either.
    assert [row.op for row in told].count("_Copy") == 2
