"""Differential mode: the same samples on two devices, compared with each other.

No oracle takes part, so this also tells how far apart two correct devices are: by units in the
last place and by relative error, op by op.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.graph.nodes import registry
from opdock.testing.harness.case import Result, Skip, describe
from opdock.testing.harness.claims import Claim, claims
from opdock.testing.harness.exemptions import exemption
from opdock.testing.harness.oracle import as_storage
from opdock.testing.harness.suite import check_names
from opdock.testing.harness.tolerances import Tolerance, compare, tolerance_for
from opdock.testing.harness.watch import Overdue, Watch, stopped
from opdock.testing.levels.device import DeviceUnderTest
from opdock.testing.levels.forward import ForwardCase, ForwardRunner, way

__all__ = ["DifferentialReport", "Pair", "compare_devices", "relative_error", "ulps"]

Array = npt.NDArray[Any]
_MISSING = "has no result"


@dataclass(frozen=True)
class Pair:
    """One op in one element type on both devices.

    Attributes:
        op, dtype: the claim.
        cases: how many samples both devices computed.
        ulp: the largest difference in units in the last place; 0 for exact types.
        relative: the largest relative difference, where the values are not near zero.
        problem: the first disagreement beyond tolerance, or empty.
        elsewhere: how the op ran on the second device: native, portable, fallback ...
    """

    op: str
    dtype: str
    cases: int
    ulp: int
    relative: float
    problem: str = ""
    elsewhere: str = ""


@dataclass(frozen=True)
class DifferentialReport:
    """What came of comparing two devices.

    Attributes:
        device, against: their full names.
        pairs: one a claim that could be compared, worst first.
        skipped: claims that were not, with the reasons.
        left: how many claims were not looked at because the run was stopped.
    """

    device: str
    against: str
    pairs: tuple[Pair, ...]
    skipped: tuple[tuple[str, str], ...]
    left: int = 0

    @property
    def ok(self) -> bool:
        """Whether nothing disagrees and something was compared."""
        return bool(self.pairs) and not any(p.problem for p in self.pairs)

    def to_dict(self) -> dict[str, Any]:
        """The report as plain data."""
        return {
            "device": self.device, "against": self.against,
            "partial": bool(self.left), "units_left": self.left,
            "pairs": [asdict(p) for p in self.pairs],
            "skipped": [{"claim": c, "reason": r} for c, r in self.skipped],
        }  # fmt: skip

    def markdown(self) -> str:
        """The report as a Markdown table."""
        bad = sum(bool(p.problem) for p in self.pairs)
        lines = [
            f"# {_short(self.device)} against {_short(self.against)}",
            "",
            *stopped(self.left),
            f"{len(self.pairs)} pairs of op and type compared, **{bad}** disagree.",
            "",
            "| op | type | samples | ulp | relative | there | disagreement |",
            "| --- | --- | --: | --: | --: | --- | --- |",
        ]
        for p in self.pairs:
            text = p.problem.replace("|", "\\|")
            lines.append(
                f"| {p.op} | {p.dtype} | {p.cases} | {p.ulp} | {p.relative:.2g} | {p.elsewhere} "
                f"| {text} |"
            )
        return "\n".join(lines) + "\n"


def _short(name: str) -> str:
    return name.rsplit("device:", 1)[-1]


def compare_devices(
    dut: DeviceUnderTest,
    against: DeviceUnderTest,
    ops: Iterable[str] = (),
    progress: Callable[[int, int, str], None] | None = None,
    watch: Watch | None = None,
) -> DifferentialReport:
    """Runs every sample of every claim of `dut` on both devices.

    Args:
        dut: its claims say what is compared.
        against: the other device; what it cannot compute may run elsewhere, and the report says so.
        ops: op types; all when empty.
        progress: called before each claim with its number, how many there are, and its name.
        watch: runs the comparisons, and limits the time of each; by default there is no limit.

    Returns:
        The report; of a run that Ctrl-C ended, of what was compared until then.

    Raises:
        ValueError: nothing is called as one of `ops`.
    """
    only = frozenset(ops)
    check_names(dut, only)
    found = claims(dut, only)[0]
    watch = watch or Watch()
    pairs: list[Pair] = []
    skipped: list[tuple[str, str]] = []
    with contextlib.suppress(KeyboardInterrupt), contextlib.closing(watch):
        for number, claim in enumerate(found):
            name = f"{claim.op}/{claim.dtype}"
            if progress is not None:
                progress(number, len(found), name)
            try:
                pairs.append(watch.run(functools.partial(_compare, dut, against, claim), name))
            except Skip as skip:
                skipped.append((name, skip.reason))
            except Overdue as late:
                pairs.append(Pair(claim.op, claim.dtype, 0, 0, 0.0, f"timeout: {late}"))
    left = len(found) - len(pairs) - len(skipped)
    pairs.sort(key=lambda p: (not p.problem, -p.ulp, -p.relative, p.op, p.dtype))
    return DifferentialReport(dut.name, against.name, tuple(pairs), tuple(skipped), left)


class _Collector(ForwardRunner):
    """Keeps what the samples of a claim gave instead of judging it."""

    def __init__(self, dut: DeviceUnderTest, claim: Claim) -> None:
        super().__init__(dut, claim, registry.get(claim.op), "L2", ("plain",), soft=True)
        self.outputs: dict[int, tuple[list[Array], ForwardCase]] = {}
        self.problems: dict[int, str] = {}
        self.ways: set[str] = set()

    def collect(self) -> None:
        """Runs every sample."""
        for number, result in enumerate(self.run()):
            if result.status == "failed":
                self.problems[number] = result.reason

    def _judge(
        self, case: ForwardCase, states: list[Any], values: list[Any], rows: Sequence[Any]
    ) -> Result:
        built = case.built
        assert built is not None
        declared = [v.dtype.base_dtype for v in built.variables]
        declared += [t.dtype for t in built.outputs]
        arrays = [as_storage(v, d) for v, d in zip([*states, *values], declared, strict=True)]
        self.outputs[case.number] = arrays, case
        self.ways.add(way(built.op.name, rows, self.dut.name))
        return self._result(case, "passed")


def _compare(dut: DeviceUnderTest, against: DeviceUnderTest, claim: Claim) -> Pair:
    exempt = exemption(claim.op)
    if exempt is not None and exempt.covers("samples"):
        raise Skip("exempt", f"{exempt.kind}: {exempt.reason}")
    for device in (dut, against):
        record = device.requirement(claim.op, claim.dtype) or device.requirement(claim.dtype)
        if record is not None:
            raise Skip(record.status, f"{device.asked}: {record.reason}")
    mine, theirs = _Collector(dut, claim), _Collector(against, claim)
    try:
        mine.collect()
        theirs.collect()
    except Exception as error:
        return Pair(claim.op, claim.dtype, 0, 0, 0.0, describe(error))
    return _judged(dut, against, claim, mine, theirs)


def _judged(
    dut: DeviceUnderTest,
    against: DeviceUnderTest,
    claim: Claim,
    mine: _Collector,
    theirs: _Collector,
) -> Pair:
    problem, worst_ulp, worst_relative, count = "", 0, 0.0, 0
    for number in sorted(mine.outputs.keys() | theirs.outputs.keys()):
        if number not in mine.outputs or number not in theirs.outputs:
            who = dut if number not in mine.outputs else against
            why = {**mine.problems, **theirs.problems}.get(number, "")
            problem = problem or f"sample {number}: {who.asked} {_MISSING}: {why}"
            continue
        got, case = mine.outputs[number]
        want, _ = theirs.outputs[number]
        if case.sample.shape_only:
            continue
        count += 1
        for i, (a, b) in enumerate(zip(got, want, strict=True)):
            slack = _slack(dut, against, claim, case, b)
            mismatch = compare(a, b, slack, f"{case.label}, output {i}")
            if mismatch is not None:
                problem = problem or mismatch.text
            if a.shape == b.shape and a.dtype == b.dtype:
                worst_ulp = max(worst_ulp, ulps(a, b))
                worst_relative = max(worst_relative, relative_error(a, b))
    if not count and not problem:
        raise Skip("unsupported", "no sample has comparable results")
    how = "/".join(sorted(theirs.ways))
    return Pair(claim.op, claim.dtype, count, worst_ulp, worst_relative, problem, how)


def _slack(
    dut: DeviceUnderTest,
    against: DeviceUnderTest,
    claim: Claim,
    case: ForwardCase,
    expected: Array,
) -> Tolerance:
    """Each device may be off by its own slack, in opposite directions."""
    rows = [d.tolerance(claim.op, claim.dtype) for d in (dut, against)]
    given = [(r.rtol, r.atol) for r in rows if r is not None]
    if case.sample.tol is not None:
        given.append(case.sample.tol)
    wide = (max(r for r, _ in given), max(a for _, a in given)) if given else None
    base = tolerance_for(expected.dtype, widened=wide)
    return Tolerance(2 * base.rtol, 2 * base.atol)


def ulps(a: Array, b: Array) -> int:
    """The largest difference in units in the last place, where the values are not near zero.

    It is 0 for types that are exact.
    """
    if not a.size or a.dtype.kind in "OSUb":
        return 0
    a, b = a.reshape(-1), b.reshape(-1)
    if a.dtype.kind == "c":
        part = np.float32 if a.dtype.itemsize == 8 else np.float64
        return ulps(np.ascontiguousarray(a).view(part), np.ascontiguousarray(b).view(part))
    if a.dtype.kind in "iu":
        return 0
    order_a, order_b = _ordered(a), _ordered(b)
    use = _telling(a.astype(np.float64), b.astype(np.float64))
    gaps = [abs(int(x) - int(y)) for x, y in zip(order_a[use], order_b[use], strict=True)]
    return max(gaps, default=0)


def _ordered(array: Array) -> Array:
    """Integers in the order of the floating-point numbers, neighbours one apart."""
    signed: Any = {2: np.int16, 4: np.int32, 8: np.int64}[array.dtype.itemsize]
    bits = np.ascontiguousarray(array).view(signed).astype(np.int64)
    low = np.int64(np.iinfo(signed).min)
    return np.asarray(np.where(bits < 0, low - bits, bits))


def relative_error(a: Array, b: Array) -> float:
    """The largest relative difference of finite values that are not near zero."""
    if not a.size or a.dtype.kind in "OSUbiu":
        return 0.0
    wide = np.complex128 if a.dtype.kind == "c" else np.float64
    x, y = a.astype(wide), b.astype(wide)
    use = _telling(x, y)
    return float((np.abs(x - y)[use] / np.abs(y)[use]).max(initial=0.0))


def _telling(x: Array, y: Array) -> npt.NDArray[np.bool_]:
    """Where both are finite and not near zero: elsewhere a ratio says nothing."""
    finite = np.isfinite(x) & np.isfinite(y)
    scale = np.where(finite, np.abs(np.where(finite, y, 0)), 0)
    return np.asarray(finite & (scale > 1e-3 * max(float(scale.max(initial=0.0)), 1e-30)), np.bool_)
