"""What the contract offers a backend, used by an installed one: each clause as programs meet it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

PROGRAMS = Path(__file__).with_name("mason_programs.py")


def run(site: Any, *program: str, **environ: str) -> Any:
    done = site.run(str(PROGRAMS), *program, **environ)
    return json.loads(done.stdout.splitlines()[-1])


def test_a_segment_shows_what_it_computes(site: Any) -> None:
    found = run(site, "view")
    assert found["inputs"] == [["x:0/copy_to_MASON0", "float32", [2, 3]]]
    assert found["outputs"] == [["out", "float32", [2, 1]]]
    assert found["variables"] == {
        "read": ["float32", [3], True, False],
        "grown": ["float32", [2, 3], True, True],
        "put": ["float32", [], False, True],
    }
    assert len(found["streams"]) == 1
    assert found["in order"]
    assert found["without call"] == ["StatelessIf", "While"]
    assert sorted(map(sorted, found["bodies"].values())) == [
        ["body", "cond"], ["else_branch", "then_branch"],
    ]  # fmt: skip
    assert all(part == ["Segment", True] for b in found["bodies"].values() for part in b.values())
    assert "mason_programs.py" in found["lines"]
    expected, got = found["values"]
    assert got == expected


def test_a_refused_node_splits_its_segment(site: Any) -> None:
    _, runs, how, missed = run(site, "split")
    assert runs == 2 and how == "portable"
    assert any("no triangles" in why for why in missed)


def test_results_may_be_finished_later(site: Any) -> None:
    (before, again), error = run(site, "late")
    assert before == again
    assert "crumbled" in error
    assert "[[node last (defined at " in error, "the op and the user's line"


def test_memory_that_nobody_needs_any_more_is_the_executables(site: Any) -> None:
    right, reused = run(site, "reuse")
    assert right and reused


def test_a_key_is_of_what_is_computed_in_every_process(site: Any) -> None:
    found = run(site, "keys", "one", PYTHONHASHSEED="1")
    assert found == run(site, "keys", "other", PYTHONHASHSEED="2")
    assert len(set(found.values())) == len(found)


def test_an_executable_goes_with_its_program(site: Any) -> None:
    found = run(site, "release")
    assert found["made"] and found["made anew"]
    assert not found["after the graph has changed"]
    assert not found["after the session"]


def test_whoever_looks_is_shown_segments(site: Any) -> None:
    found = run(site, "shown")
    ((name, told),) = found["explain"].items()
    assert told.endswith("ops by fixture_mason.compile_segment; laid stone by stone")
    assert f"segment {name}: {told}" in found["text"]
    (label,) = found["labels"]
    assert "soft Softmax" in label and "last MatMul" in label
    assert "_Segment" in found["ops"]
    assert "_Segment" in found["timeline"]


def test_what_a_device_says_of_itself_is_heeded(site: Any) -> None:
    found = run(site, "hooks")
    assert found["value"] == [[[35.0]]]
    assert set(found["formats"]) == {"NCHW"}
    assert found["fused"] and "bias" in found["fused"][0]
    assert [0, 1] in found["carried"]
    assert {device for _, device in found["made"]} == {"quarry 1"}
    assert "MASON0 to MASON1 by fixture_mason.carry" in found["text"]
    assert "NCHW, which the device prefers" in found["text"]
    assert "fusion 'mason_bias_relu'" in found["text"]


def test_a_program_that_only_reads_gets_what_was_written_last(site: Any) -> None:
    wrong, values, kept, same = run(site, "reading")
    assert wrong, "before there is a value"
    assert values == [[4, 24], [4, 24], [1, 21], [2, 31], [2, 31]]
    assert not kept, "what was replaced is nobody's any more"
    assert all(same)
