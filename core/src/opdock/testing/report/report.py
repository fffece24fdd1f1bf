"""The conformance report: scores, the op x dtype matrix, and comparison with a baseline."""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from opdock.dtypes import DType
from opdock.graph.nodes import registry
from opdock.testing.harness.case import Result, Status, Unit
from opdock.testing.harness.claims import possible_dtypes
from opdock.testing.harness.exemptions import exemption
from opdock.testing.levels.device import DeviceUnderTest
from opdock.testing.report.survey import WAYS, best_way, on_arrays

__all__ = ["LevelScore", "Report", "UnitOutcome"]

# What the runtime itself does, or the compiler spares, is as good as a kernel of its own.
_RANK: Final = {"portable": 1, "decomposed": 2, "fallback": 3}


@dataclass(frozen=True)
class UnitOutcome:
    """One unit with its results.

    Attributes:
        id, level, op, dtype, claimed: as in `Unit`.
        status: failed if any case failed; known-bug, skipped (all of them) or passed.
        results: the cases.
        seconds: how long it took.
    """

    id: str
    level: str
    op: str
    dtype: str
    claimed: bool
    status: Status
    results: tuple[Result, ...]
    seconds: float

    @classmethod
    def of(cls, unit: Unit, results: Sequence[Result], seconds: float) -> UnitOutcome:
        """The outcome of a unit that has run."""
        kinds = {r.status for r in results}
        status: Status = "passed"
        if "failed" in kinds or not results:
            status = "failed"
        elif "known-bug" in kinds:
            status = "known-bug"
        elif kinds == {"skipped"}:
            status = "skipped"
        if not results:
            results = [Result(unit.level, unit.op, unit.dtype, "", "failed", "no case ran")]
        return cls(
            unit.id, unit.level, unit.op, unit.dtype, unit.claimed, status, tuple(results), seconds
        )

    @classmethod
    def before(cls, unit: Unit, baseline: Mapping[str, Any]) -> UnitOutcome | None:
        """The outcome of a unit that passed when a baseline was made, without its cases."""
        way = baseline["ways"].get(unit.op, "") if unit.level == "ops" else ""
        if unit.id not in baseline["passed"] or (unit.level == "ops" and not way):
            return None
        found = [Result(unit.level, unit.op, how=way)] if way else []
        return cls(
            unit.id, unit.level, unit.op, unit.dtype, unit.claimed, "passed", tuple(found), 0.0
        )


@dataclass(frozen=True)
class LevelScore:
    """The counts of one level: units by status, and cases."""

    level: str
    claimed: int
    passed: int
    failed: int
    skipped: int
    known_bugs: int
    unclaimed: int
    cases: int
    seconds: float


@dataclass(frozen=True)
class Report:
    """What a run of the suite found.

    Attributes:
        device: facts about the device and the machine.
        outcomes: all units in the order in which they ran.
        fusions: how many fusions the device declares.
        seconds: how long the run took.
        left: how many units did not run because the run was stopped.
        held: the element types of the device's arrays; None for all.
        taken: how many units did not run because they had passed before.
    """

    device: Mapping[str, str]
    outcomes: tuple[UnitOutcome, ...]
    fusions: int
    seconds: float
    left: int = 0
    held: frozenset[DType] | None = None
    taken: int = 0

    @classmethod
    def of(
        cls, dut: DeviceUnderTest, outcomes: Iterable[UnitOutcome], seconds: float, left: int = 0,
        taken: int = 0,
    ) -> Report:  # fmt: skip
        """The report of a run."""
        from opdock.version import GIT_VERSION

        facts = {
            "asked": dut.asked, "name": dut.name, "backend": dut.opened.backend,
            "distribution": dut.opened.distribution, "description": dut.pool.description,
            "api": ".".join(map(str, dut.api)), "opdock": GIT_VERSION.removeprefix("opdock-"),
            "python": platform.python_version(), "numpy": np.__version__,
            "machine": platform.machine(),
        }  # fmt: skip
        return cls(facts, tuple(outcomes), len(dut.fusions), seconds, left, dut.dtypes, taken)

    # ------------------------------------------------------------ scores
    def levels(self) -> list[LevelScore]:
        """The score of each level that ran."""
        names = dict.fromkeys(o.level for o in self.outcomes)
        return [self._score(name) for name in names]

    def _score(self, level: str) -> LevelScore:
        mine = [o for o in self.outcomes if o.level == level]
        count = Counter(o.status for o in mine if o.claimed or level == "ops")
        return LevelScore(
            level,
            claimed=sum(o.claimed for o in mine) if level != "ops" else len(mine),
            passed=count["passed"],
            failed=count["failed"],
            skipped=count["skipped"],
            known_bugs=count["known-bug"],
            unclaimed=sum(not o.claimed for o in mine) if level != "ops" else 0,
            cases=sum(len(o.results) for o in mine),
            seconds=sum(o.seconds for o in mine),
        )

    def claims(self) -> list[UnitOutcome]:
        """The claims of L2: op times element type."""
        return [o for o in self.outcomes if o.level == "L2" and o.dtype not in ("", "errors")]

    def score(self) -> tuple[int, int]:
        """Claims passed, claims made; what is exempt or declared unsupported is no claim."""
        made = [o for o in self.claims() if o.status != "skipped"]
        return sum(o.status == "passed" for o in made), len(made)

    def coverage(self) -> tuple[int, int]:
        """Claims made, pairs of op and element type that any device could claim."""
        total = sum(
            len(possible_dtypes(spec))
            for spec in registry.all_ops()
            if (exempt := exemption(spec.name)) is None or not exempt.covers("samples")
        )
        return self.score()[1], total

    def ways(self) -> dict[str, int]:
        """How every op ran in a session that prefers the device: counts by way."""
        count: Counter[str] = Counter()
        for outcome in self.outcomes:
            if outcome.level != "ops":
                continue
            if outcome.status == "skipped":
                count["exempt"] += 1
            elif outcome.status == "passed":
                count[best_way(list(outcome.results))] += 1
            else:
                count["failed"] += 1
        order = (*WAYS, "failed", "exempt")
        return {way: count[way] for way in order if count[way]}

    def stayed(self) -> tuple[int, int]:
        """Of the ops that compute on what the device holds: those that stayed, and all."""
        held = self.held
        mine = [w for op, w in self.way_by_op().items() if on_arrays(registry.get(op), held)]
        return sum(way != "fallback" for way in mine), len(mine)

    def failures(self) -> list[Result]:
        """Every case that failed."""
        return [r for o in self.outcomes for r in o.results if r.status == "failed"]

    def widened(self) -> list[Result]:
        """Cases whose tolerance is wider than the table's, with the reason; one per claim."""
        found: dict[tuple[str, str, str], Result] = {}
        for outcome in self.outcomes:
            for result in outcome.results:
                if result.widened:
                    found.setdefault((result.op, result.dtype, result.widened), result)
        return list(found.values())

    # ------------------------------------------------------------ baselines
    def passed_ids(self) -> list[str]:
        """Ids of the units that passed, sorted: what a baseline holds. Fuzzing does not count."""
        return sorted(o.id for o in self.outcomes if o.status == "passed" and o.level != "L7")

    def way_by_op(self) -> dict[str, str]:
        """How each op ran in a session that prefers the device, for those that the survey ran."""
        return {
            o.op: best_way(list(o.results))
            for o in self.outcomes
            if o.level == "ops" and o.status == "passed"
        }

    def baseline(self, earlier: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """What a later run is compared with.

        Args:
            earlier: an earlier one, which stays as it is where this run did not look.
        """
        known = earlier or {"passed": (), "ways": {}}
        looked_at = {o.id for o in self.outcomes}
        surveyed = {o.op for o in self.outcomes if o.level == "ops"}
        ways = {op: way for op, way in known["ways"].items() if op not in surveyed}
        return {
            "device": self.device["backend"],
            "passed": sorted({*known["passed"]} - looked_at | {*self.passed_ids()}),
            "ways": dict(sorted((ways | self.way_by_op()).items())),
        }

    def demotions(self, ways: Mapping[str, str]) -> list[str]:
        """Ops that ran in a better way when the baseline was made, with both ways.

        Args:
            ways: op type to the way it ran then.
        """
        now = self.way_by_op()
        return [
            f"{op}: {then}, now {now[op]}"
            for op, then in sorted(ways.items())
            if op in now and _RANK.get(now[op], 0) > _RANK.get(then, 0)
        ]

    def regressions(self, baseline: Iterable[str], filtered: bool = False) -> list[str]:
        """Units that passed when the baseline was made and do not now.

        Args:
            baseline: ids of units.
            filtered: whether only some ops ran; then only what ran is compared.
        """
        ran = {o.id: o.status for o in self.outcomes}
        levels = {o.level for o in self.outcomes}
        lost = []
        for name in baseline:
            if name.split("/")[0] not in levels or (filtered and name not in ran):
                continue
            if ran.get(name) != "passed":
                lost.append(name)
        return sorted(lost)

    @property
    def proven(self) -> bool:
        """Whether nothing failed that counts for the score: fuzzing does not."""
        return not any(o.status == "failed" and o.level != "L7" for o in self.outcomes)

    @property
    def ok(self) -> bool:
        """Whether nothing failed."""
        return not any(o.status == "failed" for o in self.outcomes)

    # ------------------------------------------------------------ as data
    def to_dict(self) -> dict[str, Any]:
        """The report as plain data; of the cases only those that are not simply passed."""
        passed, claimed = self.score()
        _, total = self.coverage()
        return {
            "device": dict(self.device),
            "partial": bool(self.left),
            "units_left": self.left,
            "units_taken": self.taken,
            "score": {"passed": passed, "claimed": claimed, "total": total},
            "levels": {
                s.level: {
                    "claimed": s.claimed, "passed": s.passed, "failed": s.failed,
                    "skipped": s.skipped, "known_bugs": s.known_bugs, "unclaimed": s.unclaimed,
                    "cases": s.cases, "seconds": round(s.seconds, 3),
                }
                for s in self.levels()
            },
            "ways": self.ways(),
            "fusions": self.fusions,
            "units": {o.id: o.status for o in self.outcomes},
            "passed": self.passed_ids(),
            "cases": [
                {
                    "id": r.id, "status": r.status, "kind": r.kind, "how": r.how,
                    "reason": r.reason, "widened": r.widened,
                }
                for o in self.outcomes
                for r in o.results
                if r.status != "passed" or r.widened
            ],
            "seconds": round(self.seconds, 3),
        }  # fmt: skip
