"""opdock against what real TensorFlow answered: op cases, bad programs, small whole programs."""

from __future__ import annotations

import functools
import re
from typing import Any

import numpy as np
import pytest

import opdock as tf
from tests.oracle import reference, scope

pytestmark = reference.needs_reference


def verdict(case: str, status: str, detail: str) -> None:
    """Passes a case that passed, or one that fails as `scope` says it does."""
    known = scope.reason(case)
    if known is None:
        assert status == "pass", f"{status}: {detail}"
        return
    assert status != "pass", f"{case} passes: take it out of tests/oracle/scope.py ({known.why})"
    assert known.says in detail, f"listed as {known.kind} ({known.why}), but {status}: {detail}"


@functools.cache
def arrays(family: str) -> Any:
    strings = reference.load(f"ops/{family}.json").get("strings", {})
    with np.load(reference.FOLDER / "ops" / f"{family}.npz", allow_pickle=False) as file:
        return reference.replay().Arrays(dict(file), strings)


def op_cases() -> list[Any]:
    return [case for family in scope.FAMILIES for case in reference.cases(f"ops/{family}.json")]


@pytest.mark.parametrize("record", op_cases())
def test_op(record: dict[str, Any]) -> None:
    family = record["id"].split("/")[0]
    status, detail, _ = reference.replay().check_case(tf, record, arrays(family))
    verdict(record["id"], status, detail)


# The recorded programs leave the files they open to the garbage collector.
leaves_files_open = pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)


@leaves_files_open
@pytest.mark.parametrize("record", reference.cases("errors.json"))
def test_bad_program(record: dict[str, Any]) -> None:
    verdict(record["id"], *reference.replay().check_error(tf, record))


@leaves_files_open
@pytest.mark.parametrize("record", reference.cases("programs.json"))
def test_program(record: dict[str, Any]) -> None:
    verdict(record["id"], *reference.replay().check_program(tf, record))


def test_every_family_is_accounted_for() -> None:
    families = set(reference.replay().families(str(reference.FOLDER)))
    assert families == set(scope.FAMILIES)


def test_the_scope_lists_only_cases_that_exist() -> None:
    names = [r["id"] for f in scope.FAMILIES for r in reference.records(f"ops/{f}.json")]
    names += [r["id"] for name in ("errors.json", "programs.json") for r in reference.records(name)]
    stale = [p for p in scope.OUT_OF_SCOPE if not any(re.fullmatch(p, n) for n in names)]
    assert not stale
