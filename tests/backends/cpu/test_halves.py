"""Numbers of 16 bits through float32: what is computed there is rounded once, at the end."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import opdock as tf
from opdock import dtypes
from opdock.graph.nodes import registry
from opdock_cpu import halves
from opdock_cpu.jit import elementary
from opdock_cpu.kernels import widened

RNG = np.random.default_rng(17)
IMAGE = (2, 24, 20, 8)


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPDOCK_JIT", "sync")


def drawn(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape).astype(np.float16)


def run(build: Any, *values: Any) -> tuple[np.ndarray, str]:
    """The result of the last op, and the kernel that gave it."""
    with tf.Graph().as_default():
        inputs = [tf.placeholder(v.dtype, v.shape) for v in values]
        out = build(*inputs)
        feed = dict(zip(inputs, values, strict=True))
        with tf.Session() as session:
            kernel = next(r.kernel for r in session.explain(out, feed).rows if r.op == out.op.type)
            return session.run(out, feed), kernel


WINDOWS = {"ksize": [1, 3, 3, 1], "strides": [1, 2, 2, 1], "padding": "SAME"}


EXACT = {
    "AddN": (lambda a, b: tf.raw_ops.AddN(inputs=[a, b, a]), [(64, 99), (64, 99)]),
    "ArgMax": (lambda x: tf.raw_ops.ArgMax(input=x, dimension=1), [(64, 99)]),
    "BiasAdd": (lambda x, b: tf.raw_ops.BiasAdd(value=x, bias=b), [IMAGE, (8,)]),
    "Cross": (lambda a, b: tf.raw_ops.Cross(a=a, b=b), [(2000, 3), (2000, 3)]),
    "MaxPool": (lambda x: tf.raw_ops.MaxPool(input=x, **WINDOWS), [IMAGE]),
    "AvgPool": (lambda x: tf.raw_ops.AvgPool(value=x, **WINDOWS), [IMAGE]),
    "RGBToHSV": (lambda x: tf.raw_ops.RGBToHSV(images=x), [(40, 50, 3)]),
    "Softmax": (lambda x: tf.raw_ops.Softmax(logits=x), [(64, 99)]),
    "LRN": (lambda x: tf.raw_ops.LRN(input=x, depth_radius=2), [IMAGE]),
}


@pytest.mark.parametrize("kind", [np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("op", EXACT)
def test_kernels_of_float32_serve_halves(op: str, kind: Any) -> None:
    build, shapes = EXACT[op]
    values = [np.abs(drawn(*s)).astype(kind) for s in shapes]
    found, kernel = run(build, *values)
    wide, other = run(build, *(v.astype(np.float32) for v in values))
    assert kernel == other
    np.testing.assert_array_equal(found, wide.astype(found.dtype))


def test_products_and_windows_are_added_up_in_float32() -> None:
    x, kernel = drawn(*IMAGE), drawn(3, 3, 8, 16)
    how = {"strides": [1, 1, 1, 1], "padding": "SAME"}
    found, _ = run(lambda x, k: tf.nn.conv2d(x, k, **how), x, kernel)
    wide, _ = run(lambda x, k: tf.nn.conv2d(x, k, **how), *(v.astype("f4") for v in (x, kernel)))
    np.testing.assert_allclose(found, wide, rtol=1e-3, atol=1e-3)
    # Each product would be lost beside a sum of halves that is larger than 2,048.
    found, _ = run(tf.matmul, np.ones((3, 8192), np.float16), np.full((8192, 5), 0.5, np.float16))
    np.testing.assert_array_equal(found, np.full((3, 5), 4096))


def test_each_op_has_a_kernel_of_float32() -> None:
    """The list names no op in vain: TensorFlow's has halves, and something computes float32."""
    for op in widened.OPS:
        allowed = registry.get(op).definition.attrs["T"].allowed
        assert allowed is None or dtypes.float16 in allowed, op
        assert widened.table.for_op(op), op


def arguments(op: str, kind: Any) -> list[np.ndarray]:
    spec = registry.get(op).definition
    found = [RNG.normal(0, 3, (65, 129)).astype(kind) for _ in spec.inputs]
    for i, one in enumerate(found):
        one[i, :5] = 0.0, -0.0, np.inf, -np.inf, np.nan
    if op in ("Sqrt", "Xlogy"):
        found = [np.abs(x) for x in found]
    if op == "SelectV2":
        found[0] = RNG.random(found[0].shape) > 0.5
    return found


def taken(op: str) -> list[tuple[str, Any]]:
    """The op with each type of 16 bits that TensorFlow's takes."""
    allowed = registry.get(op).definition.attrs["T"].allowed
    kinds = (dtypes.float16, dtypes.bfloat16)
    return [(op, kind.np) for kind in kinds if allowed is None or kind in allowed]


@pytest.mark.parametrize(("op", "kind"), [c for op in elementary.HALVES for c in taken(op)])
def test_elementwise_ops_round_once(op: str, kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    spec: Any = registry.get(op)
    values = arguments(op, kind)
    with np.errstate(all="ignore"):
        found, kernel = run(spec, *values)
        monkeypatch.setattr(elementary.llvm, "available", lambda: False)
        wanted, other = run(spec, *values)
    assert "opdock_cpu.jit.elementary" in kernel
    assert "opdock_cpu.jit" not in other
    assert found.dtype == wanted.dtype
    wide, right = (np.asarray(v, np.float32) for v in (found, wanted))
    if op == "Xlogy":  # logarithms of both are within two units in the last place of float32
        np.testing.assert_allclose(wide, right, rtol=2 * float(ml_dtypes.finfo(kind).eps))
    else:
        np.testing.assert_array_equal(wide, right)


@pytest.mark.parametrize("times", [1, 64])
def test_conversions(times: int) -> None:
    """Of few numbers and of many, in any layout, into a buffer, and none where there is no need."""
    x = np.tile(drawn(12, 20), (times, 1))
    for value in (x, x.T, x[::2]):
        wide = halves.widened(value)
        assert wide.dtype == np.float32
        np.testing.assert_array_equal(wide, value.astype(np.float32))
        np.testing.assert_array_equal(halves.astype(wide, np.float16), value)
    room = np.empty((*x.shape, 2), np.float32)[..., 0]  # not contiguous
    assert halves.converted(x, np.float32, room) is room
    np.testing.assert_array_equal(room, x.astype(np.float32))
    whole = np.tile(np.array([0, 1, 2049, 65504, 65519, 65520, 1 << 30, -(1 << 40)]), 1200)
    with np.errstate(over="ignore"):
        for kind in (np.int64, np.int32, np.uint8, np.bool_):
            some = whole.astype(kind)
            np.testing.assert_array_equal(halves.converted(some, np.float16), some.astype("f2"))
    for kind in (np.float64, np.int32, np.bool_, np.complex64):
        np.testing.assert_array_equal(halves.converted(x, kind), x.astype(kind))
    assert halves.narrowed(x, np.float16) is x
    assert halves.astype(x, np.float16, copy=False) is x
    assert halves.astype(x, np.float16) is not x


def test_variables_are_added_to() -> None:
    x, y = drawn(80, 90), drawn(80, 90)
    with tf.Graph().as_default(), tf.Session() as session:
        variable = tf.Variable(x, use_resource=False)
        session.run(variable.initializer)
        np.testing.assert_array_equal(session.run(tf.assign_add(variable, y)), x + y)


@pytest.mark.parametrize("op", ["Add", "Sub", "Mul"])
def test_rows_are_rounded_one_by_one(op: str) -> None:
    """As TensorFlow's: what comes twice is added, and rounded, twice."""
    rows, ids = drawn(3000, 8), RNG.integers(0, 4, 3000)
    ufunc = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply}[op]
    wanted = np.ones((4, 8), np.float16)
    for i, row in zip(ids, rows, strict=True):
        wanted[i] = ufunc(wanted[i], row)
    with tf.Graph().as_default(), tf.Session() as session:
        variable = tf.Variable(np.ones((4, 8), np.float16), use_resource=False)
        session.run(variable.initializer)
        change = getattr(tf, f"scatter_{op.lower()}")(variable, ids, rows)
        np.testing.assert_array_equal(session.run(change), wanted)


def test_different_halves() -> None:
    x = RNG.integers(0, 500, 20_000).astype(np.float16) / 8
    values, index = unique(x)
    np.testing.assert_array_equal(values[index], x)
    assert values.dtype == np.float16 and len(values) == len(np.unique(x))
    assert list(values[:9]) == list(dict.fromkeys(x.tolist()))[:9]


def unique(value: np.ndarray) -> Any:
    with tf.Graph().as_default(), tf.Session() as session:
        fed = tf.placeholder(value.dtype, value.shape)
        return session.run(tf.unique(fed), {fed: value})
