"""The files of `make interop`, written and read by opdock alone, which needs no TensorFlow."""

from __future__ import annotations

from pathlib import Path

import pytest

import opdock as tf
from tools import interop, interop_cases


@pytest.mark.parametrize("case", interop_cases.CASES)
def test_what_is_written_is_read(case: str, tmp_path: Path) -> None:
    for step in interop_cases.CASES[case]:
        with tf.Graph().as_default():
            step(tf, tmp_path)


def test_a_case_that_fails_is_told() -> None:
    found = {"one": ["", "", "", ""], "two": ["", "it broke", "", ""]}
    lines = interop.table(found).splitlines()[2:]
    assert lines == ["| one | read | read |", "| two | fails | read |"]
