"""What the suite runs and what comes of it: units, results and typed reasons for skips."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, Literal

__all__ = [
    "Failure",
    "Result",
    "Skip",
    "SkipKind",
    "Status",
    "Unit",
    "check",
    "checked",
    "single",
    "unchecked",
]

_SWITCH: Final = "OPDOCK_CHECK"

Status = Literal["passed", "failed", "skipped", "known-bug"]
SkipKind = Literal["unsupported", "planned", "bug", "declined", "exempt", "unclaimed"]


class Failure(AssertionError):
    """A conformance case went wrong; the message says what was expected."""


class Skip(Exception):
    """A case does not apply, for a typed reason.

    Args:
        kind: "unsupported" by nature, "planned", "declined" (the kernel's `when` refuses these
            arguments), "exempt" (tested in another way), "unclaimed".
        reason: the reason in words.
    """

    def __init__(self, kind: SkipKind, reason: str) -> None:
        super().__init__(reason)
        self.kind: SkipKind = kind
        self.reason = reason


@dataclass(frozen=True)
class Result:
    """What came of one case.

    Attributes:
        level: "L0" ... "L6", or "ops" for the survey of all ops.
        op: op type, or the name of the test.
        dtype: element type, or empty.
        case: tag and variant.
        status: passed, failed, skipped or known-bug (a declared bug that did fail).
        reason: what went wrong, or why the case was skipped.
        kind: the type of a skip; "timeout" of a failure that is none of a value.
        how: how the op ran: native, portable, decomposed, builtin or fallback.
        widened: the tolerance and its reason, when wider than the table's.
    """

    level: str
    op: str
    dtype: str = ""
    case: str = ""
    status: Status = "passed"
    reason: str = ""
    kind: str = ""
    how: str = ""
    widened: str = ""

    @property
    def id(self) -> str:
        """Its whole name, as in "L2/MatMul/float32/plain.strided"."""
        return "/".join(part for part in (self.level, self.op, self.dtype, self.case) if part)


@dataclass(frozen=True)
class Unit:
    """Cases that run together: one op in one element type, or one test.

    Attributes:
        level, op, dtype: as in `Result`.
        run: does the work.
        since: the plugin API version from which the unit counts.
        claimed: whether the device claims it.
    """

    level: str
    op: str
    dtype: str
    run: Callable[[], Iterable[Result]]
    since: tuple[int, int] = (1, 0)
    claimed: bool = True

    @property
    def id(self) -> str:
        """Its whole name, as in "L2/MatMul/float32"."""
        return "/".join(part for part in (self.level, self.op, self.dtype) if part)

    def results(self) -> tuple[list[Result], float]:
        """Runs the cases; whatever escapes from them is a failure.

        Returns:
            The results and the seconds they took.
        """
        start = time.perf_counter()
        try:
            with checked():
                found = list(self.run())
        except Skip as skip:
            found = [self.result("skipped", skip.reason, skip.kind)]
        except Exception as error:
            found = [self.result("failed", describe(error))]
        return found, time.perf_counter() - start

    def result(self, status: Status, reason: str, kind: str = "") -> Result:
        """A result of the unit as a whole."""
        return Result(self.level, self.op, self.dtype, "", status, reason, kind)


@contextmanager
def checked() -> Iterator[None]:
    """Sessions made inside check all that plugins give, unless the user has said otherwise."""
    if _SWITCH in os.environ:
        yield
        return
    os.environ[_SWITCH] = "1"
    try:
        yield
    finally:
        del os.environ[_SWITCH]


@contextmanager
def unchecked() -> Iterator[None]:
    """Sessions made inside look at nothing that plugins give, and so wait for nothing."""
    before = os.environ.get(_SWITCH)
    os.environ[_SWITCH] = "0"
    try:
        yield
    finally:
        if before is None:
            del os.environ[_SWITCH]
        else:
            os.environ[_SWITCH] = before


def describe(error: BaseException) -> str:
    """Class and first lines of the message."""
    text = str(getattr(error, "message", "") or error)
    if isinstance(error, Failure):
        return text
    head = " | ".join(line for line in text.splitlines() if line.strip())[:400]
    return f"{type(error).__name__}: {head}"


def check(condition: object, message: str) -> None:
    """Raises `Failure` unless the condition holds."""
    if not condition:
        raise Failure(message)


def single(level: str, name: str, test: Callable[[], None], since: tuple[int, int]) -> Unit:
    """A unit of one test that returns when all is well and raises when it is not."""

    def run() -> list[Result]:
        test()
        return [Result(level, name)]

    return Unit(level, name, "", run, since)
