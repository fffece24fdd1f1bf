"""The workloads in JAX, each step one jitted function. Threads follow the process's processors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from workloads import resnet
from workloads.dispatch import START
from workloads.norm import EPSILON

Step = Callable[[], Any]


def setup(threads: int) -> None:
    """Nothing: see above."""


def arrays(values: Sequence[Any]) -> list[np.ndarray]:
    """On the host."""
    return [np.asarray(v) for v in values]


def conv(x: Any, w: Any, stride: int = 1) -> Any:
    """SAME convolution, NHWC and HWIO."""
    layout = ("NHWC", "HWIO", "NHWC")
    return lax.conv_general_dilated(x, w, (stride, stride), "SAME", dimension_numbers=layout)


def max_pool(x: Any, size: int, stride: int) -> Any:
    """Maximum of SAME windows."""
    window, strides = (1, size, size, 1), (1, stride, stride, 1)
    return lax.reduce_window(x, -jnp.inf, lax.max, window, strides, "SAME")


def cross_entropy(logits: Any, labels: Any) -> Any:
    """Mean over the rows."""
    chosen = jnp.take_along_axis(logits, labels[:, None], axis=1)[:, 0]
    return jnp.mean(jax.nn.logsumexp(logits, axis=1) - chosen)


def trainer(
    parameters: Sequence[np.ndarray],
    slots: Any,
    update: Callable[..., tuple[Any, Any]],
    loss: Callable[..., Any],
    batches: Sequence[tuple[np.ndarray, np.ndarray]],
) -> Step:
    """A step on the next batch, which reuses the memory of the old parameters; gives the loss."""

    def whole(parameters: Any, slots: Any, x: Any, y: Any) -> Any:
        value, slopes = jax.value_and_grad(loss)(parameters, x, y)
        return (*update(parameters, slots, slopes), value)

    run = jax.jit(whole, donate_argnums=(0, 1))
    state: Any = ([jnp.array(p) for p in parameters], slots)
    count = 0

    def step() -> float:
        nonlocal state, count
        x, y = batches[count % len(batches)]
        count += 1
        *state, value = run(*state, x, y)
        return float(value)

    return step


def descent(rate: float) -> Callable[..., tuple[Any, Any]]:
    return lambda ps, slots, gs: ([p - rate * g for p, g in zip(ps, gs)], slots)


def momentum(rate: float, keep: float) -> Callable[..., tuple[Any, Any]]:
    def update(ps: Any, sums: Any, gs: Any) -> tuple[Any, Any]:
        sums = [keep * s + g for s, g in zip(sums, gs)]
        return [p - rate * s for p, s in zip(ps, sums)], sums

    return update


def adam(rate: float) -> Callable[..., tuple[Any, Any]]:
    def update(ps: Any, slots: Any, gs: Any) -> tuple[Any, Any]:
        first, second, count = slots
        count = count + 1
        first = [m + 0.1 * (g - m) for m, g in zip(first, gs)]
        second = [v + 0.001 * (g * g - v) for v, g in zip(second, gs)]
        now = rate * jnp.sqrt(1 - 0.999**count) / (1 - 0.9**count)
        ps = [p - now * m / (jnp.sqrt(v) + 1e-8) for p, m, v in zip(ps, first, second)]
        return ps, (first, second, count)

    return update


def zeros(parameters: Sequence[np.ndarray]) -> list[Any]:
    """A slot each."""
    return [jnp.zeros(p.shape, p.dtype) for p in parameters]


def logreg(data: SimpleNamespace) -> Step:
    def loss(p: Any, x: Any, y: Any) -> Any:
        z = x @ p[0] + p[1]
        return jnp.mean(jax.nn.softplus(z) - y * z)

    return trainer(data.parameters, (), descent(data.rate), loss, data.batches)


def mlp(data: SimpleNamespace) -> Step:
    def loss(p: Any, x: Any, y: Any) -> Any:
        for i in range(0, len(p), 2):
            x = (jax.nn.relu(x) if i else x) @ p[i] + p[i + 1]
        return cross_entropy(x, y)

    p, (name, rate) = data.parameters, data.optimizer
    if name == "Adam":
        slots, update = (zeros(p), zeros(p), jnp.float32(0)), adam(rate)
        return trainer(p, slots, update, loss, data.batches)
    return trainer(p, (), descent(rate), loss, data.batches)


def convnet(data: SimpleNamespace) -> Step:
    def loss(p: Any, x: Any, y: Any) -> Any:
        for w, b in zip(p[:-2:2], p[1:-2:2]):
            x = jax.nn.relu(conv(x, w) + b)
        return cross_entropy(max_pool(x, 2, 2).reshape(x.shape[0], -1) @ p[-2] + p[-1], y)

    p = data.parameters
    return trainer(p, zeros(p), momentum(data.rate, data.keep), loss, data.batches)


def norm(data: SimpleNamespace) -> Step:
    def total(x: Any, scale: Any, offset: Any, weight: Any) -> Any:
        mean, variance = jnp.mean(x, (0, 1, 2)), jnp.var(x, (0, 1, 2))
        y = (x - mean) * lax.rsqrt(variance + EPSILON) * scale + offset
        return jnp.sum(y * weight)

    run = jax.jit(jax.value_and_grad(total, (0, 1, 2)))
    inputs = [jnp.array(a) for a in (data.x, data.scale, data.offset, data.weight)]

    def step() -> list[Any]:
        value, slopes = run(*inputs)
        return arrays([value, *slopes])

    return step


def residual(data: SimpleNamespace) -> Step:
    lib = SimpleNamespace(
        conv=conv,
        norm=lambda x, p: (
            (x - p["mean"]) * (lax.rsqrt(p["variance"] + EPSILON) * p["scale"]) + p["offset"]
        ),
        relu=jax.nn.relu,
        max_pool=max_pool,
        mean=lambda x: jnp.mean(x, (1, 2)),
        dense=lambda x, w, b: x @ w + b,
    )
    run = jax.jit(lambda p, x: resnet.network(lib, p, x))
    parameters = resnet.nested(jnp.array, data.parameters)
    return lambda: arrays([run(parameters, data.images)])


def elementwise(data: SimpleNamespace) -> Step:
    run = jax.jit(
        lambda x, gain, bias, factor, shift: jax.nn.relu(x * gain + bias) * factor - shift
    )
    vectors = [jnp.array(v) for v in data.vectors]
    return lambda: arrays([run(*vectors)])


def softmax(data: SimpleNamespace) -> Step:
    run = jax.jit(jax.value_and_grad(cross_entropy))
    logits = jnp.array(data.logits)
    return lambda: arrays(run(logits, data.labels))


def reduce(data: SimpleNamespace) -> Step:
    kinds, axes = (jnp.sum, jnp.mean, jnp.max), (0, 1, None)
    run = jax.jit(lambda x: [f(x, axis=a) for f in kinds for a in axes])
    matrix = jnp.array(data.matrix)
    return lambda: arrays(run(matrix))


def chain(data: SimpleNamespace) -> Step:
    def whole(x: Any) -> Any:
        rest = 1.0 - x
        t = x
        for i in range(data.ops):
            t = t + rest if i % 2 else t * x
        return t

    run = jax.jit(whole)
    return lambda: arrays([run(START)])


def overhead(data: SimpleNamespace) -> Step:
    run = jax.jit(jnp.negative)
    return lambda: arrays([run(START)])


def wide(data: SimpleNamespace) -> Step:
    run = jax.jit(lambda x, ws: sum(x @ w for w in ws))
    others = [jnp.array(w) for w in data.others]
    return lambda: arrays([run(data.matrix, others)])


def lstm(data: SimpleNamespace, train: bool) -> Step:
    def loss(w: Any, b: Any, sequence: Any) -> Any:
        def cell(state: Any, x: Any) -> Any:
            memory, output = state
            z = jnp.concatenate([x, output], 1) @ w + b
            keep, take, new, show = jnp.split(z, 4, 1)
            memory = jax.nn.sigmoid(keep + 1) * memory + jax.nn.sigmoid(take) * jnp.tanh(new)
            return (memory, jax.nn.sigmoid(show) * jnp.tanh(memory)), None

        start = jnp.zeros(sequence.shape[1:])
        (_, output), _ = lax.scan(cell, (start, start), sequence)
        return jnp.mean(jnp.square(output)), output

    w, b = jnp.array(data.kernel), jnp.array(data.bias)
    if not train:
        run = jax.jit(loss)
        return lambda: arrays(run(w, b, data.sequence))
    slope = jax.jit(jax.value_and_grad(loss, (0, 1), has_aux=True))

    def step() -> list[Any]:
        (value, _), slopes = slope(w, b, data.sequence)
        return arrays([value, *slopes])

    return step


def matmul(data: SimpleNamespace) -> Step:
    run, w = jax.jit(jnp.matmul), jnp.array(data.w)
    return lambda: arrays([run(data.x, w)])


def convolution(data: SimpleNamespace) -> Step:
    w = jnp.array(data.w)
    run = jax.jit(
        lambda x, w: jax.lax.conv_general_dilated(
            x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )
    )
    return lambda: arrays([run(data.x, w)])


TWINS: dict[str, Callable[[SimpleNamespace], Step]] = {
    "run_overhead": overhead,
    "dispatch_chain": chain,
    "wide_graph": wide,
    "elementwise_fusion": elementwise,
    "softmax_xent": softmax,
    "reduce": reduce,
    "logreg_train": logreg,
    "mlp_train_small": mlp,
    "mlp_train_large": mlp,
    "convnet_train": convnet,
    "bn_fused": norm,
    "bn_unfused": norm,
    "lstm_loop": lambda data: lstm(data, train=False),
    "lstm_loop_grad": lambda data: lstm(data, train=True),
    "resnet_infer_b1": residual,
    "resnet_infer_b8": residual,
    "matmul_float": matmul,
    "conv_float": convolution,
}
