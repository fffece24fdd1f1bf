"""Level L3: symbolic gradients on the device against numeric differentiation of the oracle.

For outputs y and fixed weights w the scalar is L = sum Re(conj(w) y).  `tf.gradients(y, x, w)` must
be dL/dx, and for complex x dL/dRe(x) + i dL/dIm(x); both come from central differences of the
oracle in float64.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
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

__all__ = ["gradient_units", "has_gradient", "numeric_gradient"]

Array = npt.NDArray[Any]
Scalar = Callable[[Sequence[Array]], float]

_DIFFERENTIABLE = dtypes.FLOATS | dtypes.COMPLEX
_ALL_ELEMENTS = 16
_STEP = 1e-5


def has_gradient(spec: OpSpec) -> bool:
    """Whether a gradient is defined; ops for which TF registers none raise LookupError."""
    if not spec.is_differentiable or spec.gradient_fn is None:
        return False
    return "no_gradient" not in spec.gradient_fn.__qualname__


def gradient_units(dut: DeviceUnderTest, only: frozenset[str] = frozenset()) -> Iterator[Unit]:
    """One unit per claim of a differentiable op in a floating or complex type."""
    found, _ = claims(dut)
    for claim in found:
        spec = registry.get(claim.op)
        if only and claim.op not in only:
            continue
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
    spec = registry.get(claim.op)
    checked = 0
    for number, sample in enumerate(samples_for(claim.op, numpy_dtype(claim.dtype))):
        if not sample.grad or sample.shape_only:
            continue
        label = sample.tag or str(number)
        try:
            compared = _check(dut, claim, spec, sample)
        except Exception as error:
            checked += 1
            yield Result("L3", claim.op, claim.dtype, label, "failed", describe(error))
            continue
        if compared:
            checked += 1
            yield Result("L3", claim.op, claim.dtype, label)
    if checked:
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


def _check(dut: DeviceUnderTest, claim: Claim, spec: OpSpec, sample: Sample) -> bool:
    """Compares the gradients of one sample; False when there is nothing to differentiate."""
    dtype = dtypes.as_dtype(claim.dtype)
    rng = Sampler(np.float64, f"{claim.op}/{sample.tag}/weights")
    with tf.Graph().as_default() as graph:
        built = build_case(
            spec, sample.inputs, sample.attrs, attr=claim.attr, dtype=dtype, variant="plain",
            scope=dut.scope, name="case",
        )  # fmt: skip
        chosen = [
            i
            for i, t in enumerate(built.op.outputs)
            if t.dtype in _DIFFERENTIABLE
            and (sample.grad_outputs is None or i in sample.grad_outputs)
        ]
        covered = [
            sample.grad_inputs is None or place in sample.grad_inputs for place in built.places
        ]
        if not chosen or not any(covered):
            return False
        attrs = oracle_attrs(built.op.attrs)
        plain = reference_value(spec.name, attrs, built.inputs)
        weights = [_weights(rng, plain[i], built.op.outputs[i].dtype) for i in chosen]
        with tf.device(dut.scope):
            ys = [built.op.outputs[i] for i in chosen]
            given = [tf.constant(w, y.dtype) for w, y in zip(weights, ys, strict=True)]
            grads = tf.gradients(ys, [t for t, _ in built.data], grad_ys=given)
            dense = [None if g is None else tf.convert_to_tensor(g) for g in grads]
        fetches = [g for g in dense if g is not None]
        config = session_config(soft=True, optimize=False)
        with tf.Session(graph=graph, config=config) as session:
            values = iter(session.run(fetches, built.feeds) if fetches else [])
    got = [None if g is None else as_storage(next(values), g.dtype) for g in dense]
    scalar = _scalar(spec.name, attrs, built, chosen, weights)
    for i, (_, array) in enumerate(built.data):
        if covered[i]:
            _compare(sample, built.places[i], got[i], array, _numeric(scalar, built, i))
    return True


def _weights(rng: Sampler, value: Any, dtype: Any) -> Array:
    """Weights that the output's own type can hold exactly, so device and oracle use the same."""
    shape = np.shape(value)
    made = rng.uniform(shape, 0.5, 1.5) * np.where(rng.bools(shape), 1.0, -1.0)
    if dtype.base_dtype.is_complex:
        made = made + 1j * rng.uniform(shape, 0.5, 1.5)
    return np.asarray(made).astype(dtype.base_dtype.np)


def _scalar(
    op: str, attrs: dict[str, Any], built: BuiltCase, chosen: list[int], weights: list[Array]
) -> Scalar:
    """L as a function of the data inputs, everything else fixed."""
    wide = [w.astype(np.complex128 if w.dtype.kind == "c" else np.float64) for w in weights]

    def value(data: Sequence[Array]) -> float:
        outputs = reference_value(op, attrs, _replace(built, data))
        with np.errstate(all="ignore"):
            terms = [
                np.real(np.conj(w) * outputs[i]).sum()
                for i, w in zip(chosen, wide, strict=True)
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


def _numeric(scalar: Scalar, built: BuiltCase, which: int) -> tuple[Array, Array]:
    wide = [
        a.astype(np.complex128 if a.dtype.kind == "c" else np.float64) for _, a in built.data
    ]

    def along(x: Array) -> float:
        return scalar([*wide[:which], x, *wide[which + 1 :]])

    return numeric_gradient(along, wide[which])


def numeric_gradient(scalar: Callable[[Array], float], x: Array) -> tuple[Array, Array]:
    """Central differences of ``scalar`` at ``x``.

    Returns:
      The flat positions that were differentiated (all of them in a small array, an even spread in a
      large one) and the derivatives there.
    """
    count = min(x.size, _ALL_ELEMENTS)
    places = np.unique(np.linspace(0, max(x.size - 1, 0), count).astype(np.int64))
    parts = (1.0, 1j) if x.dtype.kind == "c" else (1.0,)
    out = np.zeros(len(places), x.dtype)
    for i, place in enumerate(places):
        for part in parts:
            step = _STEP * max(1.0, abs(x.flat[place]))
            high, low = x.copy(), x.copy()
            high.flat[place] += step * part
            low.flat[place] -= step * part
            out[i] += part * (scalar(high) - scalar(low)) / (2.0 * step)
    return places, out


def _compare(
    sample: Sample,
    which: int,
    got: Array | None,
    array: Array,
    numeric: tuple[Array, Array],
) -> None:
    places, wanted = numeric
    if got is None:
        if np.abs(wanted).max(initial=0.0) > 1e-6:
            raise Failure(f"the gradient of input {which} is None, numerically {wanted[:4]}")
        return
    if got.shape != array.shape or got.dtype != array.dtype:
        raise Failure(
            f"the gradient of input {which} is {got.dtype}{list(got.shape)}, the input "
            f"{array.dtype}{list(array.shape)}"
        )
    base = tolerance_for(array.dtype, GRADIENT, sample.tol, sample.tol_reason)
    # Sums of many terms cancel: the slack follows the largest derivative.
    scale = max(1.0, float(np.abs(wanted).max(initial=0.0)))
    slack = Tolerance(base.rtol, base.atol * scale)
    picked = got.reshape(-1)[places]
    mismatch = compare(picked, wanted.astype(array.dtype), slack, f"gradient of input {which}")
    if mismatch is not None:
        raise Failure(mismatch.text)
