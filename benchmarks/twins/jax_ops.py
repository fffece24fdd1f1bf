"""What a user of JAX writes for an op, jitted with all that is no data known to the compiler."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from twins import op_names

Call = Callable[..., Any]


def reduction(name: str, attrs: Mapping[str, Any]) -> Call:
    """A function of an array and its axes."""
    keep, fold = bool(attrs.get("keep_dims")), getattr(jnp, name)
    return lambda x, axis: fold(x, axis=op_names.axes(axis, x.ndim), keepdims=keep)


def matmul(attrs: Mapping[str, Any]) -> Call:
    """A product, of matrices that may stand the other way."""
    first = attrs.get("transpose_a") or attrs.get("adj_x")
    second = attrs.get("transpose_b") or attrs.get("adj_y")
    flip = jnp.matrix_transpose
    return lambda a, b: jnp.matmul(flip(a) if first else a, flip(b) if second else b)


def conv(attrs: Mapping[str, Any]) -> Call | None:
    """A convolution of images."""
    if not op_names.plain(attrs):
        return None
    steps, padding = attrs["strides"][1:3], attrs["padding"]
    layout = ("NHWC", "HWIO", "NHWC")
    return lambda x, w: lax.conv_general_dilated(x, w, steps, padding, dimension_numbers=layout)


def pool(attrs: Mapping[str, Any], largest: bool) -> Call | None:
    """The maximum or the mean of windows."""
    if not op_names.plain(attrs):
        return None
    window = (attrs["ksize"], attrs["strides"], attrs["padding"])
    if largest:
        return lambda x: lax.reduce_window(x, -jnp.inf, lax.max, *window)

    def mean(x: Any) -> Any:
        count = lax.reduce_window(jnp.ones_like(x), 0.0, lax.add, *window)
        return lax.reduce_window(x, 0.0, lax.add, *window) / count

    return mean


def cross_entropy(logits: Any, labels: Any) -> tuple[Any, Any]:
    """Of labels that are numbers: the losses and their gradient."""
    logs = jax.nn.log_softmax(logits)
    at = labels[:, None]
    return -jnp.take_along_axis(logs, at, 1)[:, 0], jnp.exp(logs) - jax.nn.one_hot(
        labels, logits.shape[1]
    )


def segments(name: str) -> Call:
    """A fold of the rows of each id, ids from 0 to a number that is known."""
    fold = getattr(jax.ops, name)
    return lambda x, ids, count: fold(x, ids.reshape(-1), int(count))


def top(attrs: Mapping[str, Any]) -> Call:
    """The largest of each row."""
    return lambda x, *k: lax.top_k(x, int(k[0]) if k else attrs["k"])


WRITTEN: Final[dict[str, Callable[[Mapping[str, Any]], Call | None]]] = {
    "AddN": lambda a: lambda xs: sum(xs[1:], xs[0]),
    "ArgMax": lambda a: lambda x, axis: jnp.argmax(x, int(axis)).astype(jnp.int64),
    "ArgMin": lambda a: lambda x, axis: jnp.argmin(x, int(axis)).astype(jnp.int64),
    "AvgPool": lambda a: pool(a, largest=False),
    "BatchMatMul": matmul,
    "BatchMatMulV2": matmul,
    "BiasAdd": lambda a: (jnp.add if a.get("data_format", "NHWC") == "NHWC" else None),
    "BroadcastTo": lambda a: lambda x, s: jnp.broadcast_to(x, tuple(map(int, s))),
    "Cholesky": lambda a: jnp.linalg.cholesky,
    "ConcatV2": lambda a: lambda xs, axis: jnp.concatenate(xs, int(axis)),
    "Conv2D": conv,
    "Cumprod": lambda a: None if a.get("exclusive") or a.get("reverse") else (
        lambda x, axis: jnp.cumprod(x, int(axis))),
    "Cumsum": lambda a: None if a.get("exclusive") or a.get("reverse") else (
        lambda x, axis: jnp.cumsum(x, int(axis))),
    "Digamma": lambda a: jax.scipy.special.digamma,
    "Elu": lambda a: jax.nn.elu,
    "Erf": lambda a: jax.scipy.special.erf,
    "Erfc": lambda a: jax.scipy.special.erfc,
    "Erfinv": lambda a: jax.scipy.special.erfinv,
    "ExpandDims": lambda a: lambda x, axis: jnp.expand_dims(x, int(axis)),
    "FFT": lambda a: jnp.fft.fft,
    "FFT2D": lambda a: jnp.fft.fft2,
    "GatherNd": lambda a: lambda x, i: x[tuple(jnp.moveaxis(i, -1, 0))],
    "GatherV2": lambda a: None if a.get("batch_dims") else (
        lambda x, i, axis: jnp.take(x, i, int(axis), mode="clip")),
    "IFFT": lambda a: jnp.fft.ifft,
    "Igamma": lambda a: jax.scipy.special.gammainc,
    "Igammac": lambda a: jax.scipy.special.gammaincc,
    "Inv": lambda a: lambda x: 1 / x,
    "InvertPermutation": lambda a: jnp.argsort,
    "L2Loss": lambda a: lambda x: jnp.sum(x * x) / 2,
    "Lgamma": lambda a: jax.scipy.special.gammaln,
    "LogSoftmax": lambda a: jax.nn.log_softmax,
    "MatMul": matmul,
    "MatrixDeterminant": lambda a: jnp.linalg.det,
    "MatrixInverse": lambda a: None if a.get("adjoint") else jnp.linalg.inv,
    "MatrixSolve": lambda a: None if a.get("adjoint") else jnp.linalg.solve,
    "MaxPool": lambda a: pool(a, largest=True),
    "Pack": lambda a: lambda xs: jnp.stack(xs, a.get("axis", 0)),
    "Pad": lambda a: lambda x, pads: jnp.pad(x, np.asarray(pads)),
    "Prod": lambda a: reduction("prod", a),
    "Relu": lambda a: jax.nn.relu,
    "Relu6": lambda a: jax.nn.relu6,
    "Reshape": lambda a: lambda x, s: jnp.reshape(x, tuple(map(int, s))),
    "ReverseV2": lambda a: lambda x, axis: jnp.flip(x, op_names.axes(axis, x.ndim)),
    "Rsqrt": lambda a: lax.rsqrt,
    "Selu": lambda a: jax.nn.selu,
    "Sigmoid": lambda a: jax.nn.sigmoid,
    "Softmax": lambda a: jax.nn.softmax,
    "Softplus": lambda a: jax.nn.softplus,
    "Softsign": lambda a: jax.nn.soft_sign,
    "SparseSoftmaxCrossEntropyWithLogits": lambda a: cross_entropy,
    "SquaredDifference": lambda a: lambda x, y: (x - y) ** 2,
    "Tile": lambda a: lambda x, many: jnp.tile(x, tuple(map(int, many))),
    "TopKV2": top,
    "Transpose": lambda a: lambda x, order: jnp.transpose(x, tuple(map(int, order))),
    "UnsortedSegmentMax": lambda a: segments("segment_max"),
    "UnsortedSegmentSum": lambda a: segments("segment_sum"),
    "Zeta": lambda a: jax.scipy.special.zeta,
}  # fmt: skip


def function(op: str, attrs: Mapping[str, Any]) -> Call | None:
    """The function of the op's inputs, or None where nobody wrote one."""
    if op in op_names.SHARED:
        found: Call = getattr(jnp, op_names.SHARED[op])
        return found
    if op in op_names.REDUCTIONS:
        return reduction(op_names.REDUCTIONS[op], attrs)
    return WRITTEN[op](attrs) if op in WRITTEN else None


def step(call: Call, inputs: Sequence[Any], known: Sequence[bool]) -> Callable[[], list[Any]]:
    """From arrays of NumPy to arrays of NumPy; what is known is a part of the program."""
    fed = [x for x, k in zip(inputs, known, strict=True) if not k]

    @jax.jit
    def run(*given: Any) -> Any:
        rest = iter(given)
        return call(*(x if k else next(rest) for x, k in zip(inputs, known, strict=True)))

    def once() -> list[Any]:
        out = run(*fed)
        return [np.asarray(v) for v in (out if isinstance(out, list | tuple) else [out])]

    return once
