"""Level L7: small random graphs of the device's ops, against the oracle op by op.

The compiler's passes are on and soft placement is, so what is tried here is the whole way: folding,
merging, fusing, placement, copies, shared buffers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from opdock import errors
from opdock.runtime.inspect.cases import Case
from opdock.testing.harness.case import Result, Skip, Unit
from opdock.testing.harness.claims import claims
from opdock.testing.harness.namespace import tf
from opdock.testing.harness.oracle import oracle_attrs, reference_value
from opdock.testing.harness.tolerances import Tolerance, compare
from opdock.testing.levels.device import DeviceUnderTest
from opdock.testing.levels.forward import session_config
from opdock.testing.levels.fuzz_shrink import Draw, FuzzOptions, WrongResult, shrunk, strategies

__all__ = ["graph_unit", "oracle_values"]

Array = npt.NDArray[Any]
Make = Callable[[Draw, list[Any]], Any]
_SLACK = Tolerance(1e-3, 1e-3)


def graph_unit(dut: DeviceUnderTest, options: FuzzOptions, number: int) -> Unit:
    """A unit of random graphs."""

    def run() -> list[Result]:
        claimed = {c.op for c in claims(dut)[0] if c.dtype == "float32"}
        steps = [make for op, make in _STEPS if op in claimed]
        if len(steps) < 3:
            raise Skip("unsupported", "the device has too few ops of float32 to mix")
        name = f"graph-{number}"
        return shrunk(
            "L7", name, "", lambda draw: _example(dut, draw, steps), options, name, number
        )

    return Unit("L7", f"graph-{number}", "", run, claimed=False)


# ---------------------------------------------------------------- making graphs
def _pick(draw: Draw, values: list[Any]) -> Any:
    return values[draw(strategies().integers(0, len(values) - 1))]


def _unary(fn: str) -> Make:
    return lambda draw, values: getattr(tf, fn)(_pick(draw, values))


def _binary(fn: str) -> Make:
    """Of two values that broadcast; of one with itself when no other does."""

    def make(draw: Draw, values: list[Any]) -> Any:
        a = _pick(draw, values)
        fitting = [b for b in values if _broadcasts(a.shape.as_list(), b.shape.as_list())]
        return getattr(tf, fn)(a, _pick(draw, fitting))

    return make


def _broadcasts(a: list[int], b: list[int]) -> bool:
    pairs = zip(reversed(a), reversed(b), strict=False)
    return all(m == n or 1 in (m, n) for m, n in pairs)


def _axis(draw: Draw, value: Any) -> int:
    return int(draw(strategies().integers(0, max(value.shape.ndims - 1, 0))))


def _reduce(fn: str) -> Make:
    def make(draw: Draw, values: list[Any]) -> Any:
        value = _pick(draw, [v for v in values if v.shape.ndims] or values)
        if not value.shape.ndims:
            return getattr(tf, fn)(value)
        keep = draw(strategies().booleans())
        return getattr(tf, fn)(value, axis=_axis(draw, value), keepdims=keep)

    return make


def _transpose(draw: Draw, values: list[Any]) -> Any:
    value = _pick(draw, values)
    order = draw(strategies().permutations(range(value.shape.ndims)))
    return tf.transpose(value, list(order))


def _reshape(draw: Draw, values: list[Any]) -> Any:
    value = _pick(draw, values)
    shape = value.shape.as_list()
    return tf.reshape(value, _pick(draw, [[-1], shape, [1, *shape]]))


def _concat(draw: Draw, values: list[Any]) -> Any:
    value = _pick(draw, [v for v in values if v.shape.ndims] or values)
    if not value.shape.ndims:
        return tf.stack([value, value])
    return tf.concat([value, tf.tanh(value)], _axis(draw, value))


def _matmul(draw: Draw, values: list[Any]) -> Any:
    square = [v for v in values if v.shape.ndims == 2]
    if not square:
        return tf.tanh(_pick(draw, values))
    value = _pick(draw, square)
    return tf.tanh(tf.matmul(value, value, transpose_b=True))


def _softmax(draw: Draw, values: list[Any]) -> Any:
    return tf.nn.softmax(_pick(draw, [v for v in values if v.shape.ndims] or [tf.zeros([2])]))


_STEPS: tuple[tuple[str, Make], ...] = (
    ("Tanh", _unary("tanh")), ("Sigmoid", _unary("sigmoid")), ("Neg", _unary("negative")),
    ("Abs", _unary("abs")), ("Sin", _unary("sin")), ("Square", _unary("square")),
    ("AddV2", _binary("add")), ("Sub", _binary("subtract")), ("Mul", _binary("multiply")),
    ("Maximum", _binary("maximum")), ("Minimum", _binary("minimum")),
    ("Sum", _reduce("reduce_sum")), ("Mean", _reduce("reduce_mean")),
    ("Transpose", _transpose), ("Reshape", _reshape), ("ConcatV2", _concat),
    ("MatMul", _matmul), ("Softmax", _softmax),
)  # fmt: skip
"""(op that the device must have, how to add it to a graph)."""


def _example(dut: DeviceUnderTest, draw: Draw, steps: list[Make]) -> None:
    import hypothesis

    st = strategies()
    shapes = st.lists(st.sampled_from((0, 1, 2, 3)), max_size=3)
    seed = draw(st.integers(0, 999))
    rng = np.random.Generator(np.random.Philox(seed))
    with tf.Graph().as_default() as graph, tf.device(dut.scope):
        feeds: dict[Any, Array] = {}
        values: list[Any] = []
        for _ in range(draw(st.integers(1, 2))):
            array = _uniform(rng, draw(shapes))
            fed = tf.placeholder(tf.float32, array.shape)
            feeds[fed] = array
            values.append(fed)
        values.append(tf.constant(_uniform(rng, draw(shapes))))
        for _ in range(draw(st.integers(1, 8))):
            try:
                values.append(_pick(draw, steps)(draw, values))
            except ValueError:
                hypothesis.reject()
        fetches = [values[-1], _pick(draw, values)]
    wanted = oracle_values(graph, feeds)
    expected = [np.asarray(wanted[t.name]).astype(np.float32) for t in fetches]
    slack = _tolerance(wanted)

    def case() -> Case:
        return Case(
            graph.as_graph_def(), {t.name: v for t, v in feeds.items()},
            [t.name for t in fetches], expected, rtol=slack.rtol, atol=slack.atol,
            about={"found": "by fuzzing"}, optimize=True,
        )  # fmt: skip

    config = session_config(soft=True, optimize=True)
    with tf.Session(graph=graph, config=config) as session:
        try:
            got = session.run(fetches, feeds)
        except errors.OpError as error:
            text = f"{type(error).__name__}: {error.message.splitlines()[0]}"
            raise WrongResult(text, case()) from None
    for value, want, tensor in zip(got, expected, fetches, strict=True):
        mismatch = compare(np.asarray(value), want, slack, tensor.name)
        if mismatch is not None:
            ops = [op.type for op in graph.get_operations()]
            raise WrongResult(f"{mismatch.text}; ops {', '.join(ops)}", case())


def _uniform(rng: np.random.Generator, shape: list[int]) -> Array:
    return np.asarray(rng.uniform(-1, 1, tuple(shape))).astype(np.float32)


def _tolerance(wanted: dict[str, Any]) -> Tolerance:
    """Absolute slack that follows the largest value on the way: sums and squares magnify."""
    sizes = [np.abs(v).max(initial=0.0) for v in wanted.values() if np.asarray(v).dtype.kind == "f"]
    finite = [float(s) for s in sizes if np.isfinite(s)]
    return Tolerance(_SLACK.rtol, _SLACK.atol * max(1.0, *finite, 1.0) ** 0.5)


def oracle_values(graph: Any, feeds: dict[Any, Array]) -> dict[str, Any]:
    """Every tensor of a graph by name, computed by the oracle in its wide types."""
    found: dict[str, Any] = {t.name: v.astype(np.float64) for t, v in feeds.items()}
    for op in graph.get_operations():
        if op.type == "Placeholder":
            continue
        if op.type == "Const":
            value = np.asarray(op.attrs["value"])
            wide = np.float64 if value.dtype.kind == "f" else value.dtype
            found[op.outputs[0].name] = value.astype(wide)
            continue
        inputs = _grouped(op, [found[t.name] for t in op.inputs])
        outputs = reference_value(op.type, oracle_attrs(op.attrs), inputs)
        found.update((t.name, v) for t, v in zip(op.outputs, outputs, strict=True))
    return found


def _grouped(op: Any, flat: list[Any]) -> list[Any]:
    """The inputs by argument, lists as lists."""
    out: list[Any] = []
    rest = iter(flat)
    for arg in op.spec.definition.inputs:
        if arg.number_attr:
            out.append([next(rest) for _ in range(op.attrs[arg.number_attr])])
        else:
            out.append(next(rest))
    return out
