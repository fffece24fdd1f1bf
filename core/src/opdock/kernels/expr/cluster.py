"""Elementwise clusters: what a backend that computes them is given, and their value on arrays."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from opdock import shapes
from opdock.kernels.expr.evaluation import evaluator
from opdock.kernels.expr.lowering import Line
from opdock.kernels.portable.reduce import extreme, mean, sum_prod
from opdock.kernels.select.signature import NodeSig
from opdock.late import record

CLUSTER: Final = "opdock>Cluster"
"""The op type of clusters. A backend that has a kernel for it gets them; there is no other hook.

The kernel's `NodeSig` has these attributes: `line`, a `Line` with a result for each output;
`names`, the inputs' names in it, in order; `shape`, to which all inputs broadcast; `reduces`, a
`Reduce` for each of the last results; `members`, the (name, op type) of what was fused.
"""

OPEN_CLUSTER: Final = "opdock>ClusterOpen"
"""The op type of clusters whose shape is not fully known, for backends that have a kernel for it.

The attributes are those of `CLUSTER`, without reductions; `shape` has None for what is not known,
as `in_shapes` have. Ops are put together as if sizes that are not known agree wherever they meet.
Where arrays broadcast after all, the kernel raises `UnimplementedError`: the ops run one by one.
"""

REDUCTIONS: Final = {"Sum": "sum", "Mean": "mean", "Max": "max", "Min": "min", "Prod": "prod"}
"""The reductions over given axes that may be in a cluster: op type -> kind."""

_REDUCERS: Final[dict[str, tuple[str, Callable[[Any, NodeSig], Callable[..., Any]]]]] = {
    "sum": ("Sum", sum_prod), "prod": ("Prod", sum_prod), "mean": ("Mean", mean),
    "max": ("Max", extreme), "min": ("Min", extreme),
}  # fmt: skip


@record(frozen=True, slots=True)
class Reduce:
    """A reduction of a value that a cluster computes.

    Attributes:
        kind: "sum", "mean", "max", "min" or "prod".
        axes: the axes of the cluster's shape that go, sorted and not negative.
        keep_dims: whether they stay, with size 1.
    """

    kind: str
    axes: tuple[int, ...]
    keep_dims: bool


def evaluate_cluster(xp: Any, sig: NodeSig) -> Callable[..., Any]:
    """The cluster of `sig` as a function of arrays: what a kernel without a compiler binds to.

    Args:
        xp: an array-API namespace.
        sig: the signature that the kernel's binder got.

    Returns:
        `fn(*arrays)`: one array, or a tuple if the cluster has several results.
    """
    line: Line = sig.attrs["line"]
    # Before they are filled, results are as large as what they come from.
    scalar: shapes.Shape = ()
    inner = functools.reduce(shapes.broadcast, sig.in_shapes, scalar)
    run = _whole(evaluator(line, xp, sig.attrs["names"], inner), xp, sig.attrs["shape"])
    reduces: Sequence[Reduce] = sig.attrs["reduces"]
    if not reduces:
        return run
    whole = len(line.results) - len(reduces)
    totals = [_reducer(xp, sig, whole + i, reduce) for i, reduce in enumerate(reduces)]
    if len(line.results) == 1:
        return lambda *arrays: totals[0](run(*arrays))

    def call(*arrays: Any) -> tuple[Any, ...]:
        values = run(*arrays)
        folded = (total(v) for total, v in zip(totals, values[whole:], strict=True))
        return (*values[:whole], *folded)

    return call


def _whole(run: Callable[..., Any], xp: Any, shape: tuple[int, ...]) -> Callable[..., Any]:
    """Every result in the cluster's shape: one may come from inputs that broadcast to it."""

    def fill(value: Any) -> Any:
        if tuple(value.shape) == shape:
            return value
        return xp.asarray(xp.broadcast_to(value, shape), copy=True)

    def filled(*arrays: Any) -> Any:
        out = run(*arrays)
        return tuple(map(fill, out)) if isinstance(out, tuple) else fill(out)

    return filled


def _reducer(xp: Any, sig: NodeSig, output: int, reduce: Reduce) -> Callable[[Any], Any]:
    """Core's portable kernel of a reduction, so that it rounds as the op alone would."""
    op, binder = _REDUCERS[reduce.kind]
    dtype = sig.out_dtypes[output]
    alone = NodeSig(
        op, sig.name, {"keep_dims": reduce.keep_dims, "T": dtype},
        (sig.attrs["shape"],), (dtype,), (sig.out_shapes[output],), (dtype,),
        consts={1: np.array(reduce.axes, np.int32)},
    )  # fmt: skip
    run = binder(xp, alone)
    return lambda array: run(array, None)
