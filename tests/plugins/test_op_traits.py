"""A plugin's ops are citizens: passes treat them by what they declare.

The yardstick is the same program without any pass.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

PROGRAMS = Path(__file__).with_name("own_ops_programs.py")


def run(site: Any, program: str) -> tuple[Any, Any]:
    done = site.run(str(PROGRAMS), program)
    with_passes, without = json.loads(done.stdout.splitlines()[-1])
    return with_passes, without


@pytest.mark.parametrize("program", ["effects", "state", "draws", "alias"])
def test_the_same_with_every_pass_and_with_none(site: Any, program: str) -> None:
    with_passes, without = run(site, program)
    assert with_passes == without


def test_effects_happen_once_each_and_in_order(site: Any) -> None:
    (_, first, last), _ = run(site, "effects")
    assert first == [[1, 3.0], [1, 3.0]]
    assert last == [[2, 6.0], [3, 12.0]]


def test_reads_and_writes_of_one_variable_keep_their_order(site: Any) -> None:
    (values, held), _ = run(site, "state")
    assert values == [[1.0, 2.0], [11.0, 12.0], [110.0, 132.0]]
    assert held == [12.0, 13.0]


def test_equal_random_ops_draw_for_themselves(site: Any) -> None:
    (a, b, *_), _ = run(site, "draws")
    assert a == b  # the same seeds: two streams that agree, from a node each
    assert len(set(a)) == 3


def test_blocking_ops_overlap(site: Any) -> None:
    with_passes, _ = run(site, "blocks")
    assert with_passes == [5.0, 8.0]


def test_what_the_compiler_decided(site: Any) -> None:
    with_passes, without = run(site, "decisions")
    assert with_passes == {"tags": 0, "bends": 2, "in_cluster": True}
    assert without["tags"] == 2
    assert without["bends"] == 4
