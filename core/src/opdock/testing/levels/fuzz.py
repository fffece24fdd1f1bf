"""Level L7: ops with random well-formed inputs, against the oracle; run on demand, not scored.

An example takes one of the op's own samples and changes what the op leaves free: sizes of
dimensions (zero among them), values, memory layout, what is known statically. A failure is shrunk
by hypothesis and saved as a case that `opdock replay-case` runs again.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from opdock import dtypes, errors
from opdock.graph.nodes import registry
from opdock.graph.nodes.registry import OpSpec
from opdock.runtime.inspect.cases import Case
from opdock.testing.harness.build import VARIANTS, BuiltCase, build_case
from opdock.testing.harness.case import Failure, Result, Skip, Unit
from opdock.testing.harness.claims import Claim, claims, numpy_dtype
from opdock.testing.harness.exemptions import exemption
from opdock.testing.harness.namespace import tf
from opdock.testing.harness.oracle import (
    as_storage,
    expected_outputs,
    oracle_attrs,
    reference_value,
)
from opdock.testing.harness.sample import Sample, samples_for
from opdock.testing.harness.tolerances import Tolerance, compare, tolerance_for
from opdock.testing.levels.device import DeviceUnderTest
from opdock.testing.levels.forward import session_config
from opdock.testing.levels.fuzz_graphs import graph_unit
from opdock.testing.levels.fuzz_shrink import (
    PER_UNIT,
    Draw,
    FuzzOptions,
    WrongResult,
    shrunk,
    strategies,
)

__all__ = ["FuzzOptions", "fuzz_units"]

Array = npt.NDArray[Any]
Save = Callable[[], Case]

_SIZES = (0, 1, 2, 3, 5, 8)
_WIDER = 4.0
# What an exact oracle and a float device may disagree on is no bug: only these get odd values.
_MANY_VALUES = frozenset({
    "Abs", "Neg", "Relu", "Relu6", "Sign", "Square", "Floor", "Ceil", "Identity", "Maximum",
    "Minimum", "Add", "AddV2", "Sub", "Mul", "Equal", "NotEqual", "Less", "LessEqual", "Greater",
    "GreaterEqual", "Reshape", "Transpose", "ConcatV2", "Pack", "Tile", "ReverseV2", "IsNan",
    "IsInf", "IsFinite", "Exp", "Sqrt", "Sigmoid", "Tanh", "Select",
})  # fmt: skip


# Their inputs are made of each other, or well-conditioned by design: they stay as the samples have
# them, and only layout and static knowledge change.
_TIED = frozenset({
    "Cholesky", "CholeskyGrad", "Lu", "MatrixDeterminant", "MatrixExponential", "MatrixInverse",
    "LogMatrixDeterminant", "MatrixLogarithm", "MatrixSolve", "MatrixSolveLs", "MatrixSquareRoot",
    "MatrixTriangularSolve", "Qr", "SelfAdjointEigV2", "Svd", "TridiagonalSolve",
    "TridiagonalMatMul", "LowerBound", "UpperBound", "MaxPoolGrad", "MaxPoolGradV2",
    "MaxPoolGradGrad", "MaxPoolGradGradV2", "MaxPoolGradWithArgmax", "MaxPoolGradGradWithArgmax",
    "MaxPool3DGrad", "MaxPool3DGradGrad", "LRNGrad",
})  # fmt: skip


def fuzz_units(
    dut: DeviceUnderTest,
    only: frozenset[str] = frozenset(),
    options: FuzzOptions = FuzzOptions(),  # noqa: B008 - frozen
) -> Iterator[Unit]:
    """Units of ten examples each: four in five of single ops, the rest of graphs."""
    found = [c for c in claims(dut, only)[0] if not _why_not(dut, c)]
    random.Random(options.seed).shuffle(found)  # noqa: S311 - chooses tests
    count = max(1, options.examples // PER_UNIT)
    of_graphs = 0 if only else max(1, count // 5)
    for i in range(max(count - of_graphs, 1) if found else 0):
        claim, turn = found[i % len(found)], i // len(found)
        yield Unit(
            "L7", claim.op, claim.dtype,
            lambda claim=claim, turn=turn: _op_results(dut, claim, options, turn),  # type: ignore[misc]
            claimed=False,
        )  # fmt: skip
    for i in range(of_graphs):
        yield graph_unit(dut, options, i)


def _why_not(dut: DeviceUnderTest, claim: Claim) -> str:
    """Why a claim is not fuzzed; empty when it is."""
    spec = registry.get(claim.op)
    exempt = exemption(claim.op)
    if exempt is not None and exempt.covers("samples"):
        return "exempt"
    if dut.requirement(claim.op, claim.dtype) or dut.requirement(claim.dtype):
        return "declared by the plugin"
    if spec.stateful or any(a.is_ref for a in spec.definition.inputs):
        return "it works on state; level L2 covers it"
    return ""


def _op_results(
    dut: DeviceUnderTest, claim: Claim, options: FuzzOptions, turn: int
) -> list[Result]:
    made = list(samples_for(claim.op, numpy_dtype(claim.dtype)))
    made = [s for s in made if not s.shape_only]
    if not made:
        raise Skip("unsupported", "the op has no samples to start from")
    spec = registry.get(claim.op)

    def example(draw: Draw) -> None:
        sample, odd = _mutated(draw, spec, claim, made)
        variant = draw(strategies().sampled_from(VARIANTS))
        _run_example(dut, claim, spec, sample, variant, odd)

    name = f"{claim.op}-{claim.dtype}"
    return shrunk("L7", claim.op, claim.dtype, example, options, name, turn)


# ---------------------------------------------------------------- examples of one op
def _mutated(draw: Draw, spec: OpSpec, claim: Claim, made: Sequence[Sample]) -> tuple[Sample, bool]:
    """One of the samples with other sizes and values, and whether some are extreme."""
    st = strategies()
    sample = made[draw(st.integers(0, len(made) - 1))]
    if spec.name in _TIED:
        return sample, False
    args = spec.definition.inputs
    free = [bool(a.type_attr) and a.type_attr == claim.attr for a in args]
    flat = [
        np.asarray(v)
        for ok, x in zip(free, sample.inputs, strict=True) if ok
        for v in (x if isinstance(x, (list, tuple)) else [x])
    ]  # fmt: skip
    sizes = sorted({d for v in flat for d in v.shape})
    change: dict[int, int] = {}
    if sizes and draw(st.booleans()):
        change[draw(st.sampled_from(sizes))] = draw(st.sampled_from(_SIZES))
    turn = draw(st.integers(0, 7))
    odd = claim.op in _MANY_VALUES and draw(st.booleans())
    places = draw(st.lists(st.integers(0, 63), max_size=3)) if odd else []
    values = _extremes(dtypes.as_dtype(claim.dtype))
    chosen = [draw(st.sampled_from(values)) for _ in places] if values else []

    def changed(value: Any) -> Array:
        array = np.asarray(value)
        out = _cycled(array, [change.get(int(d), int(d)) for d in array.shape], turn)
        for place, extreme in zip(places, chosen, strict=False):
            if out.size:
                out.reshape(-1)[place % out.size] = extreme
        return out

    inputs = [
        ([changed(v) for v in x] if isinstance(x, (list, tuple)) else changed(x)) if ok else x
        for ok, x in zip(free, sample.inputs, strict=True)
    ]
    return replace(sample, inputs=inputs), bool(places)


def _cycled(array: Array, shape: Sequence[int], turn: int) -> Array:
    """Values of the sample in another order and number: what is in the op's domain stays so."""
    count = int(np.prod(shape))
    flat = np.roll(array.reshape(-1), turn)
    if not flat.size:
        return np.full(shape, b"" if array.dtype.hasobject else 1, array.dtype)
    out = flat[np.arange(count) % flat.size].reshape(shape)
    return np.array(out)


def _extremes(dtype: dtypes.DType) -> list[Any]:
    if dtype.is_floating:
        largest = float(np.asarray(dtype.max))
        return [0.0, -0.0, 1.0, -1.0, largest, -largest, float("inf"), float("-inf"), float("nan")]
    if dtype.is_integer and not dtype.is_quantized:
        return [0, 1, int(dtype.max), int(dtype.min)]
    return []


def _run_example(
    dut: DeviceUnderTest, claim: Claim, spec: OpSpec, sample: Sample, variant: Any, odd: bool
) -> None:
    import hypothesis

    with tf.Graph().as_default() as graph:
        try:
            built = build_case(
                spec, sample.inputs, sample.attrs, attr=claim.attr,
                dtype=dtypes.as_dtype(claim.dtype), variant=variant, scope=dut.scope, name="case",
            )  # fmt: skip
            wanted = reference_value(spec.name, oracle_attrs(built.op.attrs), built.inputs)
        except (ValueError, TypeError, Failure):
            # Sizes that do not fit together: what must happen then, error samples say.
            hypothesis.reject()
        declared = [t.dtype for t in built.outputs]
        expected = expected_outputs(wanted, declared)
        config = session_config(soft=True, optimize=False)
        with tf.Session(graph=graph, config=config) as session:
            try:
                values = session.run(built.fetches, built.feeds)
            except (errors.InvalidArgumentError, errors.UnimplementedError):
                hypothesis.reject()
            except errors.OpError as error:
                text = f"{type(error).__name__}: {error.message.splitlines()[0]}"
                raise WrongResult(text, _saved(graph, built, expected, None, claim)) from None
    for i, (value, want, dtype) in enumerate(zip(values, expected, declared, strict=True)):
        slack = _slack(dut, claim, sample, want, odd)
        mismatch = compare(as_storage(value, dtype), want, slack, f"output {i}")
        if mismatch is not None:
            text = f"{variant}: {mismatch.text}; {_inputs(built.inputs)}"
            raise WrongResult(text, _saved(graph, built, expected, slack, claim))


def _slack(dut: DeviceUnderTest, claim: Claim, sample: Sample, want: Array, odd: bool) -> Tolerance:
    row = dut.tolerance(claim.op, claim.dtype)
    widened = (row.rtol, row.atol) if row is not None else sample.tol
    base = tolerance_for(want.dtype, widened=widened)
    # Other sizes add up more terms than the samples whose slack this is.
    return Tolerance(base.rtol * _WIDER, base.atol * _WIDER)


def _inputs(inputs: Sequence[Any]) -> str:
    flat = [v for x in inputs for v in (x if isinstance(x, list) else [x])]
    texts = [f"{v.dtype.name}{list(v.shape)}" for v in flat]
    return f"inputs {', '.join(texts)}"


def _saved(
    graph: Any, built: BuiltCase, expected: list[Array], slack: Tolerance | None, claim: Claim
) -> Case | None:
    if any(t.dtype.is_quantized for t in [*built.feeds, *built.outputs]):
        return None
    return Case(
        graph.as_graph_def(),
        {t.name: np.array(v) for t, v in built.feeds.items()},
        [t.name for t in built.outputs], expected,
        rtol=None if slack is None else slack.rtol, atol=None if slack is None else slack.atol,
        about={"op": built.op.name, "type": claim.op, "found": "by fuzzing"},
    )  # fmt: skip
