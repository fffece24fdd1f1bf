"""Level L3: symbolic gradients on the device against numeric differentiation of the oracle.

For outputs y and fixed weights w the scalar is L = sum Re(conj(w) y).  `tf.gradients(y, x, w)` must
be dL/dx, and for complex x dL/dRe(x) + i dL/dIm(x); both come from central differences of the
oracle in float64.

Along random directions that takes a few evaluations of the oracle however many elements there are,
and a direction knows of each of them. Where one disagrees every element is differentiated, which
names the wrong ones; directions are held to less slack than elements, so that may find none.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from opdock import dtypes
from opdock.graph.nodes import registry
from opdock.graph.nodes.registry import OpSpec
from opdock.testing.harness.build import BuiltCase, build_case
from opdock.testing.harness.case import Failure, Result, Skip, Unit, describe
from opdock.testing.harness.claims import Claim, claims, numpy_dtype, possible_dtypes
from opdock.testing.harness.exemptions import NO_GRADIENT_SAMPLE, exemption
from opdock.testing.harness.namespace import tf
from opdock.testing.harness.oracle import as_storage, oracle_attrs, reference_value
from opdock.testing.harness.sample import Sample, Sampler, samples_for
from opdock.testing.harness.tolerances import GRADIENT, Tolerance, compare, tolerance_for
from opdock.testing.levels.device import DeviceUnderTest
from opdock.testing.levels.forward import session_config

__all__ = ["directional", "gradient_units", "has_gradient", "numeric_gradient"]

Array = npt.NDArray[Any]
Scalar = Callable[[Sequence[Array]], float]

_DIFFERENTIABLE = dtypes.FLOATS | dtypes.COMPLEX
_DIRECTIONS = 2
_TIGHTER = 16.0  # Of 19,000 directions on the CPU 29 ask for the elements then, and none at 4.
_STEP = 1e-5


def has_gradient(spec: OpSpec) -> bool:
    """Whether a gradient is defined; ops for which TF registers none raise LookupError."""
    if not spec.is_differentiable or spec.gradient_fn is None:
        return False
    return "no_gradient" not in spec.gradient_fn.__qualname__


def gradient_units(dut: DeviceUnderTest, only: frozenset[str] = frozenset()) -> Iterator[Unit]:
    """One unit per claim of a differentiable op in a floating or complex type."""
    for claim in claims(dut, only)[0]:
        spec = registry.get(claim.op)
        if dtypes.as_dtype(claim.dtype) in _DIFFERENTIABLE and has_gradient(spec):
            yield Unit(
                "L3", claim.op, claim.dtype,
                lambda claim=claim: _results(dut, claim),  # type: ignore[misc]
            )  # fmt: skip


def _results(dut: DeviceUnderTest, claim: Claim) -> Iterator[Result]:
    exempt = exemption(claim.op)
    if exempt is not None and exempt.covers("samples"):
        raise Skip("exempt", f"{exempt.kind}: {exempt.reason}")
    declared = dut.requirement(claim.op, claim.dtype) or dut.requirement(claim.dtype)
    if declared is not None:
        raise Skip(declared.status, declared.reason)
    numbered = enumerate(samples_for(claim.op, numpy_dtype(claim.dtype)))
    labelled = [(s.tag or str(i), s) for i, s in numbered if s.grad and not s.shape_only]
    found = _together(dut, claim, labelled)
    yield from found
    if found:
        return
    if claim.op in NO_GRADIENT_SAMPLE:
        raise Skip("exempt", NO_GRADIENT_SAMPLE[claim.op])
    if not _differentiated(claim.op):
        raise Failure("the op has a gradient, but no sample of any type exercises it")
    raise Skip("unsupported", "no sample of this type is differentiated; another type's are")


@functools.cache
def _differentiated(op: str) -> bool:
    """Whether any floating type has a sample for this level."""
    types = sorted(_DIFFERENTIABLE & possible_dtypes(registry.get(op)), key=lambda d: d.name)
    return any(
        sample.grad and not sample.shape_only
        for dtype in types
        for sample in samples_for(op, dtype.np)
    )


@dataclass
class _Case:
    """One sample with its gradients.

    Attributes:
        sample: the sample.
        built: the op in the graph.
        chosen: the outputs through which the gradient flows.
        weights: the weights of those outputs.
        grads: the gradient of each data input, or None.
        got: what the device computed of them.
    """

    sample: Sample
    built: BuiltCase
    chosen: list[int]
    weights: list[Array]
    grads: list[Any]
    got: list[Array | None] = field(default_factory=list)


def _together(
    dut: DeviceUnderTest, claim: Claim, labelled: Sequence[tuple[str, Sample]]
) -> list[Result]:
    """The results of samples that share a graph and a session, if none spoils it."""
    try:
        with tf.Graph().as_default() as graph:
            cases = [_case(dut, claim, s, f"case{i}") for i, (_, s) in enumerate(labelled)]
            _run(graph, [case for case in cases if case is not None])
    except Exception as error:
        if len(labelled) == 1:
            label = labelled[0][0]
            return [Result("L3", claim.op, claim.dtype, label, "failed", describe(error))]
        return [result for one in labelled for result in _together(dut, claim, [one])]
    return [
        _judged(claim, label, case)
        for (label, _), case in zip(labelled, cases, strict=True)
        if case is not None
    ]


def _case(dut: DeviceUnderTest, claim: Claim, sample: Sample, name: str) -> _Case | None:
    """Adds a sample and its gradients to the graph; None when nothing can be differentiated."""
    spec = registry.get(claim.op)
    rng = Sampler(np.float64, f"{claim.op}/{sample.tag}/weights")
    built = build_case(
        spec, sample.inputs, sample.attrs, attr=claim.attr, dtype=dtypes.as_dtype(claim.dtype),
        variant="plain", scope=dut.scope, name=name,
    )  # fmt: skip
    chosen = [
        i
        for i, t in enumerate(built.op.outputs)
        if t.dtype in _DIFFERENTIABLE and (sample.grad_outputs is None or i in sample.grad_outputs)
    ]
    if not chosen or not any(_covered(sample, place) for place in built.places):
        return None
    plain = reference_value(spec.name, oracle_attrs(built.op.attrs), built.inputs)
    ys = [built.op.outputs[i] for i in chosen]
    weights = [_weights(rng, plain[i], y.dtype) for i, y in zip(chosen, ys, strict=True)]
    with tf.device(dut.scope), tf.name_scope(f"{name}/"):
        given = [tf.constant(w, y.dtype) for w, y in zip(weights, ys, strict=True)]
        grads = tf.gradients(ys, [t for t, _ in built.data], grad_ys=given)
        dense = [None if g is None else tf.convert_to_tensor(g) for g in grads]
    return _Case(sample, built, chosen, weights, dense)


def _covered(sample: Sample, place: int) -> bool:
    return sample.grad_inputs is None or place in sample.grad_inputs


def _run(graph: Any, cases: Sequence[_Case]) -> None:
    """Computes the gradients of all cases in one step."""
    fetches = [[g for g in case.grads if g is not None] for case in cases]
    feeds = {t: a for case in cases for t, a in case.built.feeds.items()}
    config = session_config(soft=True, optimize=False)
    with tf.Session(graph=graph, config=config) as session:
        found = session.run(fetches, feeds) if any(fetches) else fetches
    for case, values in zip(cases, found, strict=True):
        left = iter(values)
        case.got = [None if g is None else as_storage(next(left), g.dtype) for g in case.grads]


def _judged(claim: Claim, label: str, case: _Case) -> Result:
    """Compares the gradients of one sample."""
    scalar = _scalar(claim.op, case)
    rng = Sampler(np.float64, f"{claim.op}/{case.sample.tag}/directions")
    try:
        for i, place in enumerate(case.built.places):
            if _covered(case.sample, place):
                _compare(case, i, scalar, rng)
    except Exception as error:
        return Result("L3", claim.op, claim.dtype, label, "failed", describe(error))
    return Result("L3", claim.op, claim.dtype, label)


def _weights(rng: Sampler, value: Any, dtype: Any) -> Array:
    """Weights that the output's own type can hold exactly, so device and oracle use the same."""
    shape = np.shape(value)
    made = rng.uniform(shape, 0.5, 1.5) * np.where(rng.bools(shape), 1.0, -1.0)
    if dtype.base_dtype.is_complex:
        made = made + 1j * rng.uniform(shape, 0.5, 1.5)
    return np.asarray(made).astype(dtype.base_dtype.np)


def _wide(array: Array) -> Array:
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)


def _scalar(op: str, case: _Case) -> Scalar:
    """L as a function of the data inputs, everything else fixed."""
    attrs = oracle_attrs(case.built.op.attrs)
    weights = [_wide(w) for w in case.weights]

    def value(data: Sequence[Array]) -> float:
        outputs = reference_value(op, attrs, _replace(case.built, data))
        with np.errstate(all="ignore"):
            terms = [
                np.real(np.conj(w) * outputs[i]).sum()
                for i, w in zip(case.chosen, weights, strict=True)
            ]
        return float(sum(terms))

    return value


def _replace(built: BuiltCase, data: Sequence[Array]) -> list[Any]:
    """The op's inputs with the data inputs, in order, exchanged for ``data``."""
    fresh = iter(data)
    ids = {id(array) for _, array in built.data}
    return [
        [next(fresh) if id(v) in ids else v for v in x]
        if isinstance(x, list)
        else (next(fresh) if id(x) in ids else x)
        for x in built.inputs
    ]


def directional(scalar: Callable[[Array], float], x: Array, along: Array) -> float:
    """The central difference of ``scalar`` at ``x`` along a direction."""
    step = _STEP * max(1.0, float(np.abs(x).max(initial=0.0)))
    return (scalar(x + step * along) - scalar(x - step * along)) / (2.0 * step)


def numeric_gradient(scalar: Callable[[Array], float], x: Array) -> Array:
    """Central differences of ``scalar`` at ``x``, element by element."""
    parts = (1.0, 1j) if x.dtype.kind == "c" else (1.0,)
    out = np.zeros(x.shape, x.dtype)
    for place in range(x.size):
        for part in parts:
            step = _STEP * max(1.0, abs(x.flat[place]))
            high, low = x.copy(), x.copy()
            high.flat[place] += step * part
            low.flat[place] -= step * part
            out.flat[place] += part * (scalar(high) - scalar(low)) / (2.0 * step)
    return out


def _compare(case: _Case, which: int, scalar: Scalar, rng: Sampler) -> None:
    """Raises `Failure` unless the gradient of one input is right."""
    sample, got = case.sample, case.got[which]
    array, place = case.built.data[which][1], case.built.places[which]
    if got is not None and (got.shape != array.shape or got.dtype != array.dtype):
        raise Failure(
            f"the gradient of input {place} is {got.dtype}{list(got.shape)}, the input "
            f"{array.dtype}{list(array.shape)}"
        )
    wide = [_wide(a) for _, a in case.built.data]
    base = tolerance_for(array.dtype, GRADIENT, sample.tol, sample.tol_reason)

    def along(x: Array) -> float:
        return scalar([*wide[:which], x, *wide[which + 1 :]])

    slopes = np.zeros_like(wide[which]) if got is None else _wide(got)
    if all(_agrees(along, wide[which], slopes, base, rng) for _ in range(_DIRECTIONS)):
        return
    wanted = numeric_gradient(along, wide[which])
    largest = float(np.abs(wanted).max(initial=0.0))
    if got is None:
        if largest > 1e-6:
            raise Failure(f"the gradient of input {place} is None, numerically {wanted.flat[:4]}")
        return
    # Sums of many terms cancel: the slack follows the largest derivative.
    slack = Tolerance(base.rtol, base.atol * max(1.0, largest))
    mismatch = compare(got, wanted.astype(array.dtype), slack, f"gradient of input {place}")
    if mismatch is not None:
        raise Failure(mismatch.text)


def _agrees(
    scalar: Callable[[Array], float], x: Array, slopes: Array, base: Tolerance, rng: Sampler
) -> bool:
    """Whether the derivative along a random direction is what the slopes say.

    Errors of rounding are independent: theirs along a direction grow with the root of their number.
    """
    direction = rng.uniform(x.shape, 0.5, 1.5) * np.where(rng.bools(x.shape), 1.0, -1.0)
    if x.dtype.kind == "c":
        direction = direction + 1j * rng.uniform(x.shape, 0.5, 1.5)
    numeric = directional(scalar, x, direction)
    with np.errstate(all="ignore"):
        terms = np.real(np.conj(slopes) * direction)
        slack = base.atol + base.rtol * float(np.sqrt(np.square(terms).sum()))
        return bool(abs(float(terms.sum()) - numeric) <= slack / _TIGHTER)
