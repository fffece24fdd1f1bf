"""How examples of level L7 run: a failing one is made as small as possible and saved."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from opdock.runtime.inspect.cases import Case
from opdock.testing.harness.case import Failure, Result, Skip

__all__ = ["PER_UNIT", "Draw", "FuzzOptions", "WrongResult", "shrunk", "strategies"]

Draw = Callable[[Any], Any]
PER_UNIT = 10
"""How many examples a unit runs."""


@dataclass(frozen=True)
class FuzzOptions:
    """How much to fuzz.

    Attributes:
        examples: how many in all.
        seed: chooses the ops and the examples; the same seed gives the same ones.
        save: the folder for failing cases.
        seconds: after how long to stop; None for never.
    """

    examples: int = 200
    seed: int = 0
    save: Path = Path("opdock-fuzz")
    seconds: float | None = None


def strategies() -> Any:
    """Hypothesis' strategies.

    Raises:
        Failure: hypothesis is not installed.
    """
    try:
        from hypothesis import strategies as found
    except ImportError as e:
        raise Failure('fuzzing needs hypothesis: pip install "opdock-core[testing]"') from e
    return found


class WrongResult(Failure):
    """An example failed; it carries what is to be saved."""

    def __init__(self, message: str, case: Case | None) -> None:
        super().__init__(message)
        self.case = case


def shrunk(
    level: str,
    op: str,
    dtype: str,
    example: Callable[[Draw], None],
    options: FuzzOptions,
    name: str,
    turn: int = 0,
) -> list[Result]:
    """Runs examples; a failing one is made as small as possible and saved."""
    import hypothesis

    last: list[WrongResult] = []

    @hypothesis.seed(options.seed * 1000 + turn)
    @hypothesis.settings(
        max_examples=PER_UNIT, database=None, deadline=None, report_multiple_bugs=False,
        suppress_health_check=list(hypothesis.HealthCheck), print_blob=False,
        verbosity=hypothesis.Verbosity.quiet,
        phases=[hypothesis.Phase.generate, hypothesis.Phase.shrink],
    )  # fmt: skip
    @hypothesis.given(strategies().data())
    def run(data: Any) -> None:
        try:
            example(data.draw)
        except WrongResult as wrong:
            last[:] = [wrong]
            raise

    try:
        run()
    except (WrongResult, hypothesis.errors.Flaky) as found:
        # Shrinking ends with the smallest example; one that fails now and then stays as it was.
        if not last:
            raise
        wrong = last[-1]
        often = "" if isinstance(found, WrongResult) else "not every time: "
        where = ""
        if wrong.case is not None:
            file = options.save / f"{re.sub(r'[^A-Za-z0-9_.-]+', '-', name)}.npz"
            where = f"; saved: {wrong.case.save(file)}"
        return [Result(level, op, dtype, "", "failed", f"{often}{wrong}{where}")]
    except hypothesis.errors.Unsatisfiable:
        raise Skip("unsupported", "no change of its samples is well-formed") from None
    return [Result(level, op, dtype, f"{PER_UNIT} examples")]
