"""Level L2: every claim against the oracle, in every variant of every sample.

The samples of one claim share a graph and a session, and the strided twin of a sample its node and
program: it is a second step with other feeds. When anything in that fails they run again one by
one, so that a failure names its sample.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from opdock import dtypes, errors
from opdock.graph.nodes import registry
from opdock.graph.nodes.registry import OpSpec
from opdock.kernels.select.flaws import flaw
from opdock.testing.harness.build import VARIANTS, BuiltCase, Variant, build_case, can_stride
from opdock.testing.harness.case import Failure, Result, Skip, Unit, describe
from opdock.testing.harness.claims import Claim, claims, numpy_dtype, refusals, varied_attr
from opdock.testing.harness.exemptions import exemption
from opdock.testing.harness.namespace import tf
from opdock.testing.harness.oracle import (
    as_storage,
    expected_outputs,
    oracle_attrs,
    reference_value,
)
from opdock.testing.harness.sample import ErrorSample, Sample, error_samples_for, sample_sets_for
from opdock.testing.harness.secondary import twins
from opdock.testing.harness.tolerances import Mismatch, Tolerance, compare, tolerance_for
from opdock.testing.levels.device import DeviceUnderTest

__all__ = [
    "ForwardCase", "ForwardRunner", "as_known_bug", "claim_results", "error_problem", "error_units",
    "forward_units", "session_config", "way", "without",
]  # fmt: skip

Array = npt.NDArray[Any]
_SWITCH: Final = "OPDOCK_DISABLE_PASSES"
_ALSO: Final = "what is fetched beside the results"


@dataclass
class ForwardCase:
    """One sample in one variant."""

    claim: Claim
    sample: Sample
    variant: Variant
    number: int
    built: BuiltCase | None = None

    @property
    def label(self) -> str:
        """Tag and variant, "plain.strided"; samples without a tag are numbered."""
        tag = self.sample.tag or str(self.number)
        return tag if self.variant == "plain" else f"{tag}.{self.variant}"


def session_config(*, soft: bool, optimize: bool) -> Any:
    """A ConfigProto; without `optimize` no compiler pass may spare a kernel its work.

    The memory plan spares none: kernels that write to buffers of the program get those.
    """
    config = tf.ConfigProto(allow_soft_placement=soft)
    if not optimize:
        options = config.graph_options.rewrite_options
        options.disable_meta_optimizer = True
        own = options.custom_optimizers.add(name="opdock")
        own.parameter_map["disable_passes"].s = b"segments"
    return config


@contextmanager
def without(passes: Iterable[str]) -> Iterator[None]:
    """Sessions made inside leave these passes and fusions out, as a user would ask for it."""
    before = os.environ.get(_SWITCH)
    os.environ[_SWITCH] = ",".join(sorted(passes))
    try:
        yield
    finally:
        if before is None:
            del os.environ[_SWITCH]
        else:
            os.environ[_SWITCH] = before


def forward_units(dut: DeviceUnderTest, only: frozenset[str] = frozenset()) -> Iterator[Unit]:
    """One unit per claim, plus a failing one per kernel of an unknown op."""
    found, unknown = claims(dut, only)
    for op in unknown:
        yield Unit("L2", op, "", lambda op=op: _unknown(op))  # type: ignore[misc]
    yield from _flawed(dut, only)
    for claim in found:
        yield Unit(
            "L2", claim.op, claim.dtype,
            lambda claim=claim: claim_results(dut, claim, "L2"),  # type: ignore[misc]
        )  # fmt: skip
    for (op, dtype), why in refusals(dut, only).items():
        yield Unit("L2", op, dtype, lambda why=why: _refused(why))  # type: ignore[misc]
    yield from error_units(dut, dict.fromkeys(c.op for c in found))


def _flawed(dut: DeviceUnderTest, only: frozenset[str]) -> Iterator[Unit]:
    """A failing unit for each record that names what its op does not have."""
    for entry in dut.kernels:
        op = entry.kernel.op
        wrong = flaw(entry.kernel) if not only or op in only else ""
        if wrong and registry.find(op) is not None:

            def run(text: str = f"{entry} on {dut.name}: {wrong}") -> list[Result]:
                raise Failure(text)

            yield Unit("L2", op, "", run)


def _unknown(op: str) -> list[Result]:
    raise Failure(f"a kernel names the op {op}, which is not registered (hook opdock_ops)")


def _refused(why: str) -> list[Result]:
    raise Skip("unsupported", why)


def claim_results(
    dut: DeviceUnderTest, claim: Claim, level: str, variants: Sequence[Variant] = VARIANTS
) -> list[Result]:
    """Runs every sample of one claim.

    Raises:
        Skip: the op is exempt, or the plugin declares it unsupported or planned.
    """
    spec = registry.get(claim.op)
    declared = dut.requirement(claim.op, claim.dtype) or dut.requirement(claim.dtype)
    if declared is not None and declared.status != "bug":
        raise Skip(declared.status, declared.reason)
    exempt = exemption(claim.op)
    if exempt is not None and exempt.covers("samples"):
        raise Skip("exempt", f"{exempt.kind}: {exempt.reason}")
    results = ForwardRunner(dut, claim, spec, level, variants).run()
    if declared is not None:
        return as_known_bug(results, f"{declared.reason} {declared.issue}".strip())
    ran = [r for r in results if r.status in ("passed", "failed")]
    if not ran:
        why = results[0].reason if results else "there are no samples for this element type"
        text = f"claimed, but no sample ran: {why}"
        results.append(Result(level, claim.op, claim.dtype, "", "failed", text))
    return results


def as_known_bug(results: list[Result], reason: str) -> list[Result]:
    """A declared bug must show: failures are expected, and none at all is a failure."""
    first = results[0] if results else None
    if first is None:
        return []
    if any(r.status == "failed" for r in results):
        bad = next(r for r in results if r.status == "failed")
        text = f"{reason} ({bad.reason})"
        return [Result(first.level, first.op, first.dtype, bad.case, "known-bug", text, "bug")]
    text = f"declared a bug, but every sample passes; remove the record: {reason}"
    return [Result(first.level, first.op, first.dtype, "", "failed", text, "bug")]


class ForwardRunner:
    """Runs the samples of one claim, together if possible."""

    def __init__(
        self,
        dut: DeviceUnderTest,
        claim: Claim,
        spec: OpSpec,
        level: str,
        variants: Sequence[Variant],
        soft: bool = False,
        optimize: bool = False,
    ) -> None:
        self.dut, self.claim, self.spec, self.level = dut, claim, spec, level
        self.variants, self.soft, self.optimize = variants, soft, optimize
        self._references: dict[int, list[Any]] = {}
        # A result whose only user is the caller may become the caller's own. Where a kernel writes
        # to buffers, each has another user on the device, so that the program keeps one for it:
        # the second step then writes over what the first has left there.
        self._plans = not soft and any(k.kernel.out for k in dut.kernels.entries(spec.name))

    def run(self) -> list[Result]:
        """Runs every sample in every variant and judges each."""
        cases = list(self._cases())
        try:
            return self._together(cases)
        except Exception:
            # One sample spoils the common session; alone, each answers for itself.
            return [self._alone(case) for case in cases]

    def _cases(self) -> Iterator[ForwardCase]:
        dtype = numpy_dtype(self.claim.dtype)
        sets = [s for s in sample_sets_for(self.claim.op) if s.since <= self.dut.api]
        made = [sample for one in sets for sample in one.make(dtype)]
        made += twins(self.spec, self.claim.attr, made)
        for number, sample in enumerate(made):
            for variant in self.variants:
                if variant == "strided" and not can_stride(sample.inputs):
                    continue
                yield ForwardCase(self.claim, sample, variant, number)

    def _build(self, case: ForwardCase, index: int) -> BuiltCase:
        return build_case(
            self.spec, case.sample.inputs, case.sample.attrs, attr=self.claim.attr,
            dtype=dtypes.as_dtype(self.claim.dtype), variant=case.variant, scope=self.dut.scope,
            name=f"case{index}",
        )  # fmt: skip

    def _together(self, cases: list[ForwardCase]) -> list[Result]:
        with tf.Graph().as_default() as graph:
            plain: dict[int, BuiltCase] = {}
            for index, case in enumerate(cases):
                twin = plain.get(case.number) if case.variant == "strided" else None
                case.built = self._build(case, index) if twin is None else twin.strided()
                # A second step of a stateful op is not its first.
                if not (case.variant == "strided" or self.spec.stateful or case.built.variables):
                    plain[case.number] = case.built
            return self._execute(graph, cases)

    def _alone(self, case: ForwardCase) -> Result:
        try:
            with tf.Graph().as_default() as graph:
                case.built = self._build(case, 0)
                return self._execute(graph, [case])[0]
        except Exception as error:
            declined = None if self.soft else self._declined(case, error)
            if declined is not None:
                return self._result(case, "skipped", declined, "declined")
            return self._result(case, "failed", describe(error))

    def _execute(self, graph: Any, cases: list[ForwardCase]) -> list[Result]:
        # The first case of a node, by its name, and the ones that share it.
        first: dict[str, ForwardCase] = {}
        twins = [c for c in cases if first.setdefault(_built(c).op.name, c) is not c]
        built = [_built(c) for c in first.values()]
        feeds = {t: a for b in built for t, a in b.feeds.items()}
        fetches = {name: _built(c).fetches for name, c in first.items()}
        if self._plans:
            with tf.device(self.dut.scope):
                kept = [tf.identity(t) for b in built for t in b.outputs]
            fetches |= {_ALSO: kept}
        variables = [v for b in built for v in b.variables]
        reads = {n: [v.read_value() for v in _built(c).variables] for n, c in first.items()}
        config = session_config(soft=self.soft, optimize=self.optimize)
        with tf.Session(graph=graph, config=config) as session:
            if variables:
                session.run([v.initializer for v in variables])
            values = session.run(fetches, feeds)
            states = session.run(reads) if variables else reads
            rows = session.explain(fetches, feeds).rows
            other = feeds | {t: a for c in twins for t, a in _built(c).feeds.items()}
            again = session.run(fetches, other) if twins else {}
        shares = {id(c) for c in twins}

        def judged(case: ForwardCase) -> Result:
            name = _built(case).op.name
            found = (again if id(case) in shares else values)[name]
            return self._judge(case, states[name], found if _built(case).outputs else [], rows)

        return [judged(case) for case in cases]

    # ------------------------------------------------------------ judgement
    def _judge(
        self, case: ForwardCase, states: list[Any], values: list[Any], rows: Sequence[Any]
    ) -> Result:
        built = _built(case)
        how = way(built.op.name, rows, self.dut.name)
        try:
            # Of an op that works on variables the oracle says their new values first.
            declared = [v.dtype.base_dtype for v in built.variables]
            declared += [t.dtype for t in built.outputs]
            wanted = self._expected(case, declared)
            widened = self._compare(case, [*states, *values], wanted, declared)
            _check_static_shapes(built, values)
            if not self.soft and how in ("fallback", "removed"):
                raise Failure(f"it did not run on {self.dut.name} ({how})")
        except Failure as failure:
            return self._result(case, "failed", str(failure), how=how)
        return self._result(case, "passed", how=how, widened=widened)

    def _expected(self, case: ForwardCase, declared: Sequence[Any]) -> list[Array]:
        found = self._references.get(case.number)
        if found is None:
            built = _built(case)
            found = reference_value(self.spec.name, oracle_attrs(built.op.attrs), built.inputs)
            self._references[case.number] = found
        return expected_outputs(found, declared)

    def _compare(
        self, case: ForwardCase, values: list[Any], wanted: list[Array], declared: Sequence[Any]
    ) -> str:
        if not declared:
            return ""
        widened = ""
        for i, (value, expected, dtype) in enumerate(zip(values, wanted, declared, strict=True)):
            got = as_storage(value, dtype)
            if case.sample.shape_only:
                mismatch = _same_kind(got, expected)
            else:
                slack = self._tolerance(case.sample, expected)
                mismatch = compare(got, expected, slack, f"output {i}")
                if slack.reason:
                    widened = f"rtol {slack.rtol:g}, atol {slack.atol:g}: {slack.reason}"
            if mismatch is not None:
                raise Failure(mismatch.text)
        return widened

    def _tolerance(self, sample: Sample, expected: Array) -> Tolerance:
        row = self.dut.tolerance(self.claim.op, self.claim.dtype)
        if row is not None:
            return tolerance_for(
                expected.dtype, widened=(row.rtol, row.atol), reason=f"plugin: {row.reason}"
            )
        return tolerance_for(expected.dtype, widened=sample.tol, reason=sample.tol_reason)

    def _declined(self, case: ForwardCase, error: Exception) -> str | None:
        """Why every kernel of the device refuses this sample, when that is what went wrong."""
        if not isinstance(error, (errors.InvalidArgumentError, errors.UnimplementedError)):
            return None
        if isinstance(error, errors.InvalidArgumentError) and "device" not in str(error).lower():
            return None
        try:
            with tf.Graph().as_default() as graph:
                built = self._build(case, 0)
                config = session_config(soft=True, optimize=False)
                with tf.Session(graph=graph, config=config) as session:
                    rows = session.explain(built.fetches, built.feeds).rows
        except Exception:
            return None
        for row in rows:
            if row.node == built.op.name and row.device != self.dut.name:
                reasons = [r for r in row.rejections if self.dut.name in r]
                return "; ".join(reasons) or "no kernel admits it"
        if isinstance(error, errors.UnimplementedError):
            return describe(error)
        return None

    def _result(
        self, case: ForwardCase, status: Any, reason: str = "", kind: str = "", how: str = "",
        widened: str = "",
    ) -> Result:  # fmt: skip
        op, dtype = self.claim.op, self.claim.dtype
        return Result(self.level, op, dtype, case.label, status, reason, kind, how, widened)


def _built(case: ForwardCase) -> BuiltCase:
    assert case.built is not None
    return case.built


def way(name: str, rows: Sequence[Any], device: str) -> str:
    """How an op ran on ``device``, from the rows of `Session.explain`."""
    mine = [r for r in rows if r.node == name or r.node.startswith(f"{name}/")]
    if not mine:
        return "removed"
    if any(r.device not in (device, "host", "") for r in mine):
        return "fallback"
    hows = {r.how for r in mine}
    for kind in ("decomposed", "portable", "native", "builtin", "control", "removed"):
        if kind in hows:
            return "builtin" if kind == "control" else kind
    return "fallback"


def _same_kind(got: Array, expected: Array) -> Mismatch | None:
    if got.dtype == expected.dtype and got.shape == expected.shape:
        return None
    return Mismatch(
        f"got {got.dtype}{list(got.shape)}, expected {expected.dtype}{list(expected.shape)}"
    )


def _check_static_shapes(built: BuiltCase, values: Sequence[Any]) -> None:
    for i, (tensor, value) in enumerate(zip(built.outputs, values, strict=True)):
        static, actual = tensor.raw_shape, np.shape(value)
        if static is None:
            continue
        fits = len(static) == len(actual) and all(
            s is None or s == a for s, a in zip(static, actual, strict=True)
        )
        if not fits:
            raise Failure(f"output {i}: static shape {static}, but the value has {actual}")


# ---------------------------------------------------------------- errors
def error_units(dut: DeviceUnderTest, ops: Iterable[str]) -> Iterator[Unit]:
    """One unit per op that has error samples."""
    for op in ops:
        found = list(error_samples_for(op))
        if found:
            yield Unit(
                "L2", op, "errors",
                lambda op=op, found=found: _error_results(dut, op, found),  # type: ignore[misc]
            )  # fmt: skip


def _error_results(dut: DeviceUnderTest, op: str, found: Sequence[ErrorSample]) -> Iterator[Result]:
    for number, sample in enumerate(found):
        label = f"{sample.tag or number}.{sample.phase}"
        problem = error_problem(dut, op, sample)
        status: Any = "failed" if problem else "passed"
        yield Result("L2", op, "errors", label, status, problem)


def error_problem(dut: DeviceUnderTest, op: str, sample: ErrorSample) -> str:
    """What is wrong about how a bad call fails on a device; empty when it fails as it should."""
    error = provoked(dut, op, sample)
    if error is None:
        return f"nothing was raised, expected {sample.exception}"
    wanted = getattr(errors, sample.exception, None) or getattr(
        __import__("builtins"), sample.exception
    )
    if not isinstance(error, wanted):
        return f"raised {describe(error)}, expected {sample.exception}"
    if sample.match and not re.search(sample.match, str(error)):
        if sample.phase == "run" and f"(op: '{op}') with input shapes" in str(error):
            return ""  # The shape function, which runs again on what is fed, spoke first.
        return f"the message {str(error)[:300]!r} does not match {sample.match!r}"
    return ""


def provoked(dut: DeviceUnderTest, op: str, sample: ErrorSample) -> Exception | None:
    """What a bad call fails with on a device; None if it does not."""
    try:
        _provoke(dut, op, sample)
    except Exception as error:
        return error
    return None


def _provoke(dut: DeviceUnderTest, op: str, sample: ErrorSample) -> None:
    spec = registry.get(op)
    attr = varied_attr(spec)
    dtype = _sample_dtype(spec, attr, sample)
    with tf.Graph().as_default() as graph:
        built = build_case(
            spec, sample.inputs, sample.attrs, attr=attr, dtype=dtype,
            variant="plain" if sample.phase == "build" else "unknown", scope=dut.scope, name="case",
        )  # fmt: skip
        if sample.phase == "build":
            return
        config = session_config(soft=True, optimize=False)
        with tf.Session(graph=graph, config=config) as session:
            if built.variables:
                session.run([v.initializer for v in built.variables])
            session.run(built.fetches, built.feeds)


def _sample_dtype(spec: OpSpec, attr: str, sample: ErrorSample) -> dtypes.DType:
    """The type that an error sample, or its arrays, give to the varied attribute."""
    if sample.dtype:
        return dtypes.as_dtype(sample.dtype)
    for arg, value in zip(spec.definition.inputs, sample.inputs, strict=False):
        if attr and arg.type_attr == attr:
            array = np.asarray(value[0] if arg.is_list else value)
            return dtypes.string if array.dtype.kind in "OSU" else dtypes.as_dtype(array.dtype)
    given = sample.attrs.get(attr)
    return dtypes.float32 if given is None else dtypes.as_dtype(given)
