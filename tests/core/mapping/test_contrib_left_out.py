"""What of tf.contrib is left out says so, and the page lists it."""

from __future__ import annotations

import re
from operator import attrgetter
from pathlib import Path

import pytest

import opdock as tf
from opdock.mapping import left_out

PAGE = Path(__file__).resolve().parents[3] / "docs/how-to/run-tf1-programs.md"


@pytest.mark.parametrize("package", sorted(left_out.CONTRIB))
def test_a_name_of_a_package_that_is_left_out_says_why(package: str) -> None:
    with pytest.raises(AttributeError) as told:
        attrgetter(f"{package}.no_such_name")(tf.contrib)
    assert f"leaves tf.contrib.{package} out: {left_out.CONTRIB[package]}" in str(told.value)


def test_the_page_lists_them() -> None:
    table = PAGE.read_text().partition("| not there |")[2].partition("\n\n")[0]
    rows = [row.split("|")[1:3] for row in table.splitlines() if row.startswith("| `")]
    listed = {name: why.strip() for names, why in rows for name in re.findall(r"`([\w.]+)`", names)}
    assert listed == left_out.CONTRIB
