"""Level L5 for elementwise clusters: whatever graph, fused equals unfused.

A backend takes part by having a kernel for clusters. Graphs are made of functions that keep values
near one, so that a difference of rounding stays one.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from opdock import dtypes
from opdock.kernels.expr.cluster import CLUSTER
from opdock.testing.harness.case import Failure, Result, Skip, Unit
from opdock.testing.harness.namespace import tf
from opdock.testing.harness.tolerances import Tolerance, compare, tolerance_for
from opdock.testing.levels.device import DeviceUnderTest
from opdock.testing.levels.forward import session_config, without

__all__ = ["cluster_units"]

Array = npt.NDArray[Any]
Made = tuple[list[Any], dict[Any, Array]]  # tensors to fetch, and what to feed
Make = Callable[[np.random.Generator], Made]
SEEDS: Final = 12
REDUCTIONS: Final = ("sum", "mean", "max", "min", "prod")
DTYPES: Final = ("float64", "float16", "bfloat16", "int32", "int64", "uint8")


def cluster_units(dut: DeviceUnderTest, only: frozenset[str] = frozenset()) -> Iterator[Unit]:
    """The units of clusters; none for a device that has no kernel for them."""
    if not dut.kernels.entries(CLUSTER):
        return
    for name, dtype, make in _graphs():
        if not only or name in only or "cluster" in only:
            run = functools.partial(_result, dut, name, dtype, make)
            yield Unit("L5", name, dtype, run)


def _graphs() -> Iterator[tuple[str, str, Make]]:
    yield "cluster/chain", "float32", _chain
    yield "cluster/broadcast", "float32", _broadcast
    yield "cluster/outputs", "float32", _outputs
    yield "cluster/buffers", "float32", _buffers
    yield "cluster/types", "float32", _types
    yield "cluster/scalar", "float32", _scalar
    yield "cluster/limit", "float32", _long
    yield "cluster/reduce-many", "float32", _many
    for kind in REDUCTIONS:
        yield f"cluster/reduce-{kind}", "float32", functools.partial(_reduce, kind)
    for dtype in DTYPES:
        yield f"cluster/{dtype}", dtype, functools.partial(_plain, dtype)
    for seed in range(SEEDS):
        yield f"cluster/random-{seed}", "float32", functools.partial(_random, seed)


def _result(dut: DeviceUnderTest, name: str, dtype: str, make: Make) -> Iterable[Result]:
    held = dut.dtypes
    if held is not None and dtypes.as_dtype(dtype) not in held:
        raise Skip("unsupported", f"the device holds no {dtype}")
    with tf.Graph().as_default() as graph:
        with tf.device(dut.scope):
            fetches, feeds = make(np.random.default_rng(len(name)))
        explained, got = _run(graph, fetches, feeds, fused=True)
        members = [set(_types_of(explained, r)) for r in explained.rows if r.op == CLUSTER]
        wanted = {"Sum", "Mean", "Max", "Min", "Prod"} if "reduce" in name else set()
        if not members or (wanted and not any(m & wanted for m in members)):
            reasons = sorted({m for r in explained.rows for m in r.missed})
            if not reasons:
                raise Failure("no cluster was formed, and nothing says why")
            raise Skip("declined", "; ".join(reasons[:3]))
        unfused, want = _run(graph, fetches, feeds, fused=False)
        if any(r.op == CLUSTER for r in unfused.rows):
            raise Failure("clusters are formed although optimization is off")
    for i, (a, b) in enumerate(zip(got, want, strict=True)):
        mismatch = compare(a, b, _tolerance(b.dtype), f"fused against unfused, output {i}")
        if mismatch is not None:
            raise Failure(mismatch.text)
    yield Result("L5", name, dtype)


def _run(
    graph: Any, fetches: list[Any], feeds: dict[Any, Array], *, fused: bool
) -> tuple[Any, list[Array]]:
    config = session_config(soft=True, optimize=fused)
    with without(["segments"]), tf.Session(graph=graph, config=config) as session:
        return session.explain(fetches, feeds), session.run(fetches, feeds)


def _types_of(explained: Any, row: Any) -> list[str]:
    return [r.op for r in explained.rows if r.how == "fused" and r.node in row.members]


def _tolerance(dtype: Any) -> Tolerance:
    # Each op of a chain may round in another direction.
    base = tolerance_for(dtype)
    return Tolerance(base.rtol * 8, base.atol * 8, "a chain of ops")


# ---------------------------------------------------------------- graphs
def _fed(rng: np.random.Generator, *shapes: tuple[int, ...], dtype: str = "float32") -> Made:
    """Placeholders with data between 0.25 and 1.5, or small whole numbers."""
    kind = dtypes.as_dtype(dtype)
    tensors, feeds = [], {}
    for shape in shapes:
        data = rng.integers(1, 7, shape) if kind.is_integer else rng.uniform(0.25, 1.5, shape)
        tensor = tf.placeholder(kind, shape)
        tensors.append(tensor)
        feeds[tensor] = np.asarray(data).astype(kind.np)
    return tensors, feeds


def _chain(rng: np.random.Generator) -> Made:
    (x,), feeds = _fed(rng, (7, 33))
    y = tf.nn.relu(tf.exp(-x) * 2.0 - 0.5)
    return [tf.sqrt(tf.square(tf.tanh(y + x)) + 1.0) / (x + 2.0)], feeds


def _broadcast(rng: np.random.Generator) -> Made:
    (x, row, column, scalar, batch), feeds = _fed(rng, (2, 5, 7), (7,), (5, 1), (), (2, 1, 1))
    return [tf.tanh(x * row + column) - scalar * x / batch + row], feeds


def _outputs(rng: np.random.Generator) -> Made:
    (x, b), feeds = _fed(rng, (6, 4), (4,))
    first = tf.nn.sigmoid(tf.nn.bias_add(x, b))
    second = first * (1.0 - first)
    return [first, second, tf.matmul(second, first, transpose_b=True) + 1.0, first + x], feeds


def _buffers(rng: np.random.Generator) -> Made:
    """Results that nobody keeps, so that they belong in planned buffers: one, and several."""
    (x,), feeds = _fed(rng, (5, 5))
    one = tf.matmul(x, tf.tanh(tf.square(x) - 0.5))
    first = tf.exp(-tf.abs(one))
    second = first * 0.5 + x
    both = tf.matmul(first, second)
    return [tf.matmul(tf.sin(both) * 0.25, one), tf.matmul(both, both)], feeds


def _types(rng: np.random.Generator) -> Made:
    (x,), feeds = _fed(rng, (4, 9))
    whole = tf.cast(x * 4.0, tf.int32)
    chosen = tf.where(whole > 2, x * 2.0, tf.cast(whole, tf.float32) - x)
    return [chosen, tf.logical_and(x > 0.5, x < 1.0), whole + 1], feeds


def _scalar(rng: np.random.Generator) -> Made:
    (x, y), feeds = _fed(rng, (), ())
    return [tf.tanh(x * y + 0.5) - x, x / y * 0.25], feeds


def _long(rng: np.random.Generator) -> Made:
    (x,), feeds = _fed(rng, (3, 5))
    y = x
    for i in range(150):
        y = tf.sin(y) + x if i % 2 else y * 0.5
    return [y], feeds


def _reduce(kind: str, rng: np.random.Generator) -> Made:
    (x,), feeds = _fed(rng, (3, 4, 5))
    reduce = getattr(tf, f"reduce_{kind}")
    fetches = []
    for i, axes in enumerate((None, [0], [1], [-1], [0, 2], [1, 2])):
        # Each over a value of its own: not every backend reduces more than one in a pass.
        fetches.append(reduce(tf.tanh(x * (i + 1.0)), axes, keepdims=i % 2 == 1))
    shared = tf.exp(-x)
    return [*fetches, shared, reduce(shared, [0, 1])], feeds


def _many(rng: np.random.Generator) -> Made:
    """Reductions of one value over differing axes, and one that the rest of its pass waits for."""
    (x,), feeds = _fed(rng, (6, 7, 40))
    y = tf.tanh(x)
    fetches = [
        tf.reduce_sum(y, 0), tf.reduce_mean(y, [1, 2]), tf.reduce_max(y), tf.reduce_min(y, [0, 2]),
        tf.reduce_prod(y, -1, keepdims=True), tf.nn.l2_loss(x), tf.reduce_sum(x, [0, 1]),
    ]  # fmt: skip
    centred = y - tf.reduce_mean(y, -1, keepdims=True)
    return [*fetches, centred, tf.reduce_mean(tf.square(centred), [0, 1])], feeds


def _plain(dtype: str, rng: np.random.Generator) -> Made:
    (x, y), feeds = _fed(rng, (5, 6), (6,), dtype=dtype)
    z = x * y + y
    if x.dtype.is_floating:
        z = tf.maximum(tf.tanh(z) / x, y)
    return [z, tf.cast(z > y, x.dtype) * x], feeds


def _unary() -> list[Callable[[Any], Any]]:
    return [
        tf.tanh, tf.nn.sigmoid, tf.sin, tf.nn.softplus, tf.nn.elu,
        lambda x: tf.exp(-tf.square(x)), lambda x: tf.nn.relu(x) + 0.25, lambda x: -x,
        lambda x: tf.sqrt(tf.abs(x) + 1.0), lambda x: tf.log1p(tf.abs(x)),
        lambda x: tf.tanh(tf.reduce_mean(x, -1, keepdims=True)) if x.shape.ndims else x * 0.5,
        lambda x: tf.cast(x > 0.0, tf.float32),
    ]  # fmt: skip


def _binary() -> list[Callable[[Any, Any], Any]]:
    return [
        tf.maximum, tf.minimum, lambda a, b: 0.5 * a + b, lambda a, b: tf.tanh(a) * b,
        lambda a, b: a - 0.5 * b, lambda a, b: tf.tanh(tf.squared_difference(a, b)),
        lambda a, b: a / (tf.abs(b) + 1.0),
        lambda a, b: tf.where(tf.greater(a + 0.0 * b, b + 0.0 * a), a + 0.0 * b, b + 0.0 * a),
    ]  # fmt: skip


def _random(seed: int, rng: np.random.Generator) -> Made:
    """Thirty steps over operands of several shapes; every third value is fetched."""
    rng = np.random.default_rng(seed)
    tensors, feeds = _fed(rng, (4, 6), (6,), (4, 1), ())
    tensors, unary, binary = list(tensors), _unary(), _binary()
    for _ in range(30):
        a, b = (tensors[int(i)] for i in rng.integers(0, len(tensors), 2))
        if rng.random() < 0.4:
            tensors.append(unary[int(rng.integers(len(unary)))](a))
        else:
            tensors.append(binary[int(rng.integers(len(binary)))](a, b))
    return tensors[6::3], feeds
