"""Random programs on any device against float64, within bounds that follow from their ops.

    python tools/random_programs.py --device /device:CPU:0 --programs 200 --seed 0

A program has 5 to 500 ops, of float32 and of float16, and runs in a session, as eager operations,
as a `tf.function` and as the function of a dataset, in turn. Beside each value stands how far it
may be from the exact one: what its inputs' errors become, and what the op itself may round, which
is said op by op in `OPS`. So a bound is as wide as the program makes it, and no wider.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import opdock as tf
from opdock.eager.graph import EagerGraph

Array = np.ndarray[Any, Any]
LARGEST = 200.0
"""What no value exceeds: squares of halves stay finite."""
SOFT = tf.ConfigProto(allow_soft_placement=True)


@dataclass(frozen=True)
class Known:
    """What a value is, and how far it may be off.

    Attributes:
        exact: in float64.
        error: at most, elementwise.
    """

    exact: Array
    error: Array


@dataclass(frozen=True)
class Precision:
    """How a type rounds.

    Attributes:
        unit: of a rounded number, its greatest relative error.
        least: what may be lost where numbers are subnormal.
    """

    unit: float
    least: float

    @classmethod
    def of(cls, dtype: str) -> Precision:
        """That of a type; devices may take subnormal float32 for zero."""
        limits = np.finfo(dtype)
        least = limits.tiny if dtype == "float32" else limits.smallest_subnormal
        return cls(float(limits.eps) / 2, float(least))

    def rounded(self, exact: Array, carried: Array, roundings: float = 1) -> Known:
        """A value whose inputs' errors make it so much wrong, and which is rounded then."""
        size = np.abs(exact) + carried
        return Known(exact, carried + roundings * self.unit * size + self.least)

    def summed(self, exact: Array, carried: Array, size: Array, terms: int) -> Known:
        """A sum of so many terms, added up in any order, whose absolute values add up to `size`."""
        steps = max(terms, 1) * self.unit
        factor = steps / (1 - steps)
        return Known(exact, carried + factor * (size + carried) + max(terms, 1) * self.least)


Reference = Callable[..., Known]
Make = Callable[..., Any]


@dataclass(frozen=True)
class Op:
    """A way to make a value of others.

    Attributes:
        inputs: how many values it takes; they broadcast.
        known: of a precision, the inputs and a number: what the value is.
        make: of the inputs' tensors and the number: the tensor.
    """

    inputs: int
    known: Reference
    make: Make


# ---------------------------------------------------------------- ops
def steepest(slope: Callable[[Array], Array], x: Known) -> Array:
    """The error of a function whose slope falls from 0 on to both sides."""
    return slope(np.maximum(np.abs(x.exact) - x.error, 0.0)) * x.error


def sigmoid(x: Array) -> Array:
    """In float64."""
    return 1 / (1 + np.exp(-x))


def product(p: Precision, a: Known, b: Known, n: int) -> Known:
    """`a * b`."""
    carried = np.abs(a.exact) * b.error + np.abs(b.exact) * a.error + a.error * b.error
    return p.rounded(a.exact * b.exact, carried)


def quotient(p: Precision, a: Known, b: Known, n: int) -> Known:
    """`a / (1 + b * b)`: four roundings at most, those of the divisor relative to it."""
    square = product(p, b, b, n)
    below = p.rounded(1 + square.exact, square.error)
    least = below.exact - below.error
    carried = (np.abs(a.exact) * below.error / below.exact + a.error) / least
    return p.rounded(a.exact / below.exact, carried, 5)


def root(p: Precision, x: Known, n: int) -> Known:
    """`sqrt(1 + |x|)`."""
    inner = p.rounded(1 + np.abs(x.exact), x.error)
    exact = np.sqrt(inner.exact)
    lower = np.sqrt(np.maximum(inner.exact - inner.error, 0.0))
    return p.rounded(exact, inner.error / (exact + lower), 6)


def exponential(p: Precision, x: Known, n: int) -> Known:
    """`exp(-|x|)`."""
    exact = np.exp(-np.abs(x.exact))
    return p.rounded(exact, exact * np.expm1(np.minimum(x.error, 50.0)), 6)


def matmul(p: Precision, a: Known, b: Known, n: int) -> Known:
    """`a` by the transpose of `b`: sums of products."""
    right = Known(b.exact.T, b.error.T)
    size, other = np.abs(a.exact), np.abs(right.exact)
    carried = size @ right.error + a.error @ other + a.error @ right.error
    return p.summed(a.exact @ right.exact, carried, size @ other, a.exact.shape[1])


def total(p: Precision, x: Known, n: int) -> Known:
    """The sums of rows or columns."""
    axis = n % 2
    size = np.abs(x.exact).sum(axis, keepdims=True)
    carried = x.error.sum(axis, keepdims=True)
    return p.summed(x.exact.sum(axis, keepdims=True), carried, size, x.exact.shape[axis])


def mean(p: Precision, x: Known, n: int) -> Known:
    """Such a sum, divided."""
    found, count = total(p, x, n), x.exact.shape[n % 2]
    return p.rounded(found.exact / count, found.error / count, 2)


def cumulative(p: Precision, x: Known, n: int) -> Known:
    """Sums of what came before, whose parts may be added up as a device likes."""
    size, carried = np.abs(x.exact).cumsum(1), x.error.cumsum(1)
    return p.summed(x.exact.cumsum(1), carried, size, x.exact.shape[1])


def softmax(p: Precision, x: Known, n: int) -> Known:
    """Exponentials, whose errors are relative, divided by their sum."""
    below = x.exact - x.exact.max(1, keepdims=True)
    exact = np.exp(below)
    exact = exact / exact.sum(1, keepdims=True)
    off = x.error + x.error.max(1, keepdims=True) + 2 * p.unit * np.abs(below)
    relative = np.expm1(np.minimum(off, 50.0)) + 6 * p.unit
    worst = np.minimum(relative.max(1, keepdims=True), 1.0)
    terms = x.exact.shape[1] * p.unit
    carried = exact * ((1 + relative) * (1 + worst / np.maximum(1 - worst, 1e-3)) * (1 + terms) - 1)
    return p.rounded(exact, np.minimum(carried, 1.0), 6)


def turned(p: Precision, x: Known, n: int) -> Known:
    """`for` over `n % 4` turns of `x = x * 0.5 + 0.25`."""
    for _ in range(n % 4):
        half = p.rounded(x.exact * 0.5, x.error * 0.5)
        x = p.rounded(half.exact + 0.25, half.error)
    return x


def turns(x: Any, n: int) -> Any:
    """The same; Python's loop over a tensor is rewritten in functions."""
    for _ in tf.range(n % 4):
        x = x * 0.5 + 0.25
    return x


def looped(x: Any, n: int) -> Any:
    """The same as a loop of the graph's."""
    return tf.while_loop(lambda i, x: i < n % 4, lambda i, x: (i + 1, x * 0.5 + 0.25), [0, x])[1]


def moved(move: Callable[[Array, int], Array]) -> Reference:
    """What only puts values elsewhere."""
    return lambda p, x, n: Known(move(x.exact, n), np.abs(move(x.error, n)))


def linear(combine: Callable[[Array, Array], Array]) -> Reference:
    """A sum or a difference."""
    return lambda p, a, b, n: p.rounded(combine(a.exact, b.exact), a.error + b.error)


def chosen(choose: Callable[[Array, Array], Array]) -> Reference:
    """One of two numbers, which errors may exchange."""
    return lambda p, a, b, n: Known(choose(a.exact, b.exact), np.maximum(a.error, b.error))


def smooth(
    f: Callable[[Array], Array], slope: Callable[[Array], Array], roundings: int
) -> Reference:
    """A function by its slope, and by how often it rounds."""
    return lambda p, x, n: p.rounded(f(x.exact), steepest(slope, x), roundings)


def other_type(x: Any) -> Any:
    """To float64 and back."""
    return tf.cast(tf.cast(x, tf.float64), x.dtype)


def either(x: Any, n: int) -> Any:
    """`x` or its negative, as a number says that only the program's run knows."""
    return tf.cond(tf.equal(tf.constant(n) % 2, 0), lambda: x, lambda: -x)


def if_either(x: Any, n: int) -> Any:
    """The same by Python's `if`, which is rewritten in functions."""
    y = x
    if tf.equal(tf.constant(n) % 2, 0):
        y = x
    else:
        y = -x
    return y


OPS: dict[str, Op] = {
    "add": Op(2, linear(np.add), lambda a, b, n: a + b),
    "sub": Op(2, linear(np.subtract), lambda a, b, n: a - b),
    "mul": Op(2, product, lambda a, b, n: a * b),
    "div": Op(2, quotient, lambda a, b, n: a / (1.0 + b * b)),
    "max": Op(2, chosen(np.maximum), lambda a, b, n: tf.maximum(a, b)),
    "min": Op(2, chosen(np.minimum), lambda a, b, n: tf.minimum(a, b)),
    "neg": Op(1, moved(lambda x, n: x), lambda x, n: tf.negative(tf.negative(x))),
    "abs": Op(1, lambda p, x, n: Known(np.abs(x.exact), x.error), lambda x, n: tf.abs(x)),
    "relu": Op(
        1, lambda p, x, n: Known(np.maximum(x.exact, 0), x.error), lambda x, n: tf.nn.relu(x)
    ),
    "square": Op(1, lambda p, x, n: product(p, x, x, n), lambda x, n: tf.square(x)),
    "tanh": Op(1, smooth(np.tanh, lambda x: 1 - np.tanh(x) ** 2, 12), lambda x, n: tf.tanh(x)),
    "sigmoid": Op(
        1, smooth(sigmoid, lambda x: sigmoid(x) * sigmoid(-x), 12), lambda x, n: tf.sigmoid(x)
    ),
    "sin": Op(1, smooth(np.sin, np.ones_like, 8), lambda x, n: tf.sin(x)),
    "exp": Op(1, exponential, lambda x, n: tf.exp(-tf.abs(x))),
    "sqrt": Op(1, root, lambda x, n: tf.sqrt(1.0 + tf.abs(x))),
    "matmul": Op(2, matmul, lambda a, b, n: tf.matmul(a, b, transpose_b=True)),
    "sum": Op(1, total, lambda x, n: tf.reduce_sum(x, n % 2, keepdims=True)),
    "mean": Op(1, mean, lambda x, n: tf.reduce_mean(x, n % 2, keepdims=True)),
    "largest": Op(
        1,
        lambda p, x, n: Known(x.exact.max(n % 2, keepdims=True), x.error.max(n % 2, keepdims=True)),
        lambda x, n: tf.reduce_max(x, n % 2, keepdims=True),
    ),
    "cumsum": Op(1, cumulative, lambda x, n: tf.cumsum(x, 1)),
    "softmax": Op(1, softmax, lambda x, n: tf.nn.softmax(x)),
    "transpose": Op(1, moved(lambda x, n: x.T), lambda x, n: tf.transpose(x)),
    "reshape": Op(
        1, moved(lambda x, n: x.reshape(x.shape[::-1])),
        lambda x, n: tf.reshape(x, x.shape.as_list()[::-1]),
    ),
    "reverse": Op(1, moved(lambda x, n: x[:, ::-1]), lambda x, n: x[:, ::-1]),
    "rows": Op(
        1, moved(lambda x, n: x[[0, n % len(x)]]),
        lambda x, n: tf.gather(x, [0, n % x.shape.as_list()[0]]),
    ),
    "concat": Op(1, moved(lambda x, n: np.concatenate([x, -x], n % 2)[: len(x) + 2, :8]),
                 lambda x, n: tf.concat([x, -x], n % 2)[: x.shape.as_list()[0] + 2, :8]),
    "cast": Op(1, moved(lambda x, n: x), lambda x, n: other_type(x)),
    "loop": Op(1, turned, looped),
    "for": Op(1, turned, turns),
    "cond": Op(1, lambda p, x, n: Known(-x.exact if n % 2 else x.exact, x.error), either),
    "if": Op(1, lambda p, x, n: Known(-x.exact if n % 2 else x.exact, x.error), if_either),
}  # fmt: skip
"""Each op, with what it rounds: a sum, difference or product once; functions within 4 ulp (6 of
`tanh` and `sigmoid`, which are made of others); sums as often as they have terms."""
REWRITTEN = {"for", "if"}
"""Those whose Python depends on tensors, which plain graphs do not allow."""


# ---------------------------------------------------------------- programs
@dataclass(frozen=True)
class Program:
    """What to compute.

    Attributes:
        number: of the program.
        dtype: of all values.
        feeds: the values to begin with.
        steps: the name of an op, the places of its inputs among the values, and a number.
        values: what all values are.
    """

    number: int
    dtype: str
    feeds: tuple[Array, ...]
    steps: tuple[tuple[str, tuple[int, ...], int], ...]
    values: tuple[Known, ...]

    def tensors(self, feeds: Sequence[Any]) -> list[Any]:
        """The last value, and those that nothing else uses, at most eight."""
        made = list(feeds)
        for name, places, n in self.steps:
            made.append(OPS[name].make(*(made[i] for i in places), n))
        return [made[i] for i in self.ends]

    @property
    def ends(self) -> list[int]:
        """The places of what is looked at."""
        used = {i for _, places, _ in self.steps for i in places}
        return [i for i in range(len(self.values)) if i not in used][-8:]


def program(seed: int, number: int, dtype: str, rewritten: bool) -> Program:
    """The program of a number; its ops are chosen so that no value grows out of bounds."""
    rng = np.random.Generator(np.random.Philox([seed, number]))
    precision = Precision.of(dtype)
    count = round(np.exp(rng.uniform(np.log(5), np.log(500))))
    shapes = [(rng.integers(1, 8), rng.integers(1, 8)) for _ in range(2)]
    feeds = tuple(rng.uniform(-2, 2, shape).astype(dtype) for shape in shapes)
    values = [Known(f.astype(np.float64), np.zeros(f.shape)) for f in feeds]
    steps: list[tuple[str, tuple[int, ...], int]] = []
    names = [n for n in OPS if rewritten or n not in REWRITTEN]
    while len(steps) < count:
        name, n = str(rng.choice(names)), int(rng.integers(12))
        places = [_recent(rng, len(values))]
        if OPS[name].inputs == 2:
            fitting = [i for i, v in enumerate(values) if _fit(name, values[places[0]], v)]
            places.append(fitting[_recent(rng, len(fitting))])
        made = OPS[name].known(precision, *(values[i] for i in places), n)
        if np.abs(made.exact).max() + made.error.max() > LARGEST or made.error.max() > 0.5:
            continue
        steps.append((name, tuple(places), n))
        values.append(made)
    return Program(number, dtype, feeds, tuple(steps), tuple(values))


def _recent(rng: np.random.Generator, count: int) -> int:
    """One of so many, a late one most often: programs are deep then."""
    return max(count - 1 - int(rng.exponential(4.0)), 0)


def _fit(name: str, a: Known, b: Known) -> bool:
    if name == "matmul":
        return a.exact.shape[1] == b.exact.shape[1]
    return all(m == n or 1 in (m, n) for m, n in zip(a.exact.shape, b.exact.shape, strict=True))


# ---------------------------------------------------------------- running
def in_session(made: Program, device: str) -> list[Array]:
    """In a session."""
    return _of_graph(made, device, made.tensors)


def as_function(made: Program, device: str) -> list[Array]:
    """As a `tf.function`, in a session."""
    return _of_graph(made, device, tf.function(made.tensors))


def _of_graph(made: Program, device: str, build: Callable[[list[Any]], Any]) -> list[Array]:
    with tf.Graph().as_default(), tf.device(device), tf.Session(config=SOFT) as session:
        fed = [tf.placeholder(made.dtype, f.shape) for f in made.feeds]
        found: list[Array] = session.run(build(fed), dict(zip(fed, made.feeds, strict=True)))
        return found


def eagerly(made: Program, device: str) -> list[Array]:
    """As operations that run when they are made."""
    with EagerGraph(SOFT).as_default(), tf.device(device):
        return [t.numpy() for t in made.tensors([tf.constant(f) for f in made.feeds])]


def in_dataset(made: Program, device: str) -> list[Array]:
    """As the function of a dataset's map."""

    def changed(*feeds: Any) -> Any:
        with tf.device(device):
            return tuple(made.tensors(feeds))

    with tf.Graph().as_default(), tf.Session(config=SOFT) as session:
        data = tf.data.Dataset.from_tensors(made.feeds).map(changed)
        found: tuple[Array, ...] = session.run(tf.data.make_one_shot_iterator(data).get_next())
        return list(found)


WAYS: dict[str, tuple[Callable[[Program, str], list[Array]], bool]] = {
    "session": (in_session, False), "eager": (eagerly, True), "function": (as_function, True),
    "dataset": (in_dataset, True),
}  # fmt: skip
"""How a program runs, and whether its Python may depend on tensors there."""


def off(made: Program, found: Sequence[Array]) -> float:
    """The largest error as a share of what it may be; infinity where a result is no such value."""
    worst = 0.0
    for place, value in zip(made.ends, found, strict=True):
        known = made.values[place]
        if value.shape != known.exact.shape or value.dtype != made.dtype:
            return float("inf")
        share = np.abs(value.astype(np.float64) - known.exact) / known.error.clip(1e-300)
        # Nothing is less than or equal to nan.
        worst = max(worst, float(share.max())) if np.all(share <= np.inf) else float("inf")
    return worst


def main() -> int:
    """Runs the programs; 1 when one is beyond its bounds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="/device:CPU:0")
    parser.add_argument("--programs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--types", default="float32,float16")
    parser.add_argument("--ways", default=",".join(WAYS))
    args = parser.parse_args()
    bad = False
    ways = args.ways.split(",")
    for dtype in args.types.split(","):
        worst, ops = dict.fromkeys(ways, 0.0), 0
        for number in range(args.programs):
            way = ways[number % len(ways)]
            run, rewritten = WAYS[way]
            made = program(args.seed, number, dtype, rewritten)
            ops += len(made.steps)
            share = off(made, run(made, args.device))
            worst[way] = max(worst[way], share)
            if share > 1:
                bad = True
                print(f"{dtype} {number} ({way}, {len(made.steps)} ops): {share:.3g} of its bound")
        told = ", ".join(f"{way} {share:.2f}" for way, share in worst.items())
        print(f"{args.device} {dtype}: {args.programs} programs of {ops} ops; worst {told}")
    return bad


if __name__ == "__main__":
    sys.exit(main())
