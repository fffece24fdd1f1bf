"""`opdock_place_node` of an installed plugin: what it is told, and that its answer is heeded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

PROGRAMS = Path(__file__).with_name("places_programs.py")


def run(site: Any, program: str, **environ: str) -> tuple[Any, str]:
    done = site.run(str(PROGRAMS), program, **environ)
    return json.loads(done.stdout.splitlines()[-1]), done.stderr


def test_nodes_candidates_and_config(site: Any) -> None:
    (value, rows, seen), _ = run(site, "rungs")
    assert value == pytest.approx([1.0, 2.523188])
    assert rows["native"] == ["PLACE:1", "native", "chosen by plugin 'place'"]
    assert rows["portable"] == ["PLACE:0", "portable", "chosen by plugin 'place'"]
    assert any(w[0] == "PLACE:1" and w[1] == "decomposed" for w in rows.values())
    assert "pinned" not in seen, "the user's device scope decides"

    node = seen["native"]["node"]
    assert node == {
        "op": "Relu", "attrs": ["T"], "requested": "", "in": [["float32", [2]]],
        "out": [["float32", [2]]], "line": "places_programs.py", "group": [],
    }  # fmt: skip
    assert seen["native"]["config"] == ["ConfigProto", False, {"PLACE": 2}]

    told = seen["native"]["candidates"]
    assert next(iter(told)) == "CPU:0", "core's own choice comes first"
    assert told["PLACE:1"] == {
        "backend": "place", "rung": "native", "kernel": "proud_relu", "plugin": "place",
        "priority": -30, "elsewhere": [], "rejections": ["never on a Sunday"],
    }  # fmt: skip
    assert told["CPU:0"]["priority"] == 0 and told["CPU:0"]["backend"] == "cpu"
    portable = seen["portable"]["candidates"]["PLACE:0"]
    assert (portable["rung"], portable["plugin"]) == ("portable", "core")
    decomposed = seen["decomposed"]["candidates"]["PLACE:1"]
    assert (decomposed["rung"], decomposed["plugin"]) == ("decomposed", "core")
    assert "MOODY:0" not in told, "it has no kernel for Relu"


def test_a_group_is_asked_about_once_and_not_when_its_value_is_there(site: Any) -> None:
    (value, row, told, later), _ = run(site, "group")
    assert value == [2.0, 3.0]
    assert row[0] == "PLACE:1"
    assert len(told) == 1, "the variable, its initializer and the like are one group"
    assert told[0]["candidates"]["PLACE:1"]["rung"] == "builtin"
    assert later == [], "the variable has its place now"


def test_a_device_for_half_a_group(site: Any) -> None:
    (value, told, first, second, again), _ = run(site, "halves")
    assert value == [1.0, 1.0]
    moody = told["MOODY:0"]
    assert (moody["rung"], moody["elsewhere"], moody["kernel"]) == ("fallback", ["first"], "")
    assert any("no kernel for Tanh" in r for r in moody["rejections"])
    assert list(told)[-1] == "MOODY:0", "core would rather have a device for both"
    assert first[0] == "CPU:0" and second == ["MOODY:0", "native"]
    assert not again, "a group is asked about once"


def test_what_gave_up_and_what_was_lost(site: Any) -> None:
    found, _ = run(site, "bans")
    assert found["before"]["PLACE:0"]["rung"] == "native"
    banned = found["banned"]["PLACE:0"]
    assert banned["rung"] == "portable", "the proud kernel gave up on the node"
    assert any("gave up at run time" in r and "too low" in r for r in banned["rejections"])
    assert found["banned"]["PLACE:1"]["rung"] == "native"
    assert found["where"][0] == "PLACE:1" and found["where"][1] != "PLACE:1"
    assert found["values"] == [[2.0, 4.0]] * 2
    assert "PLACE:1" not in found["offered"] and "PLACE:0" in found["offered"]


def test_an_answer_that_is_no_candidate(site: Any) -> None:
    value, stderr = run(site, "nonsense")
    assert value == [0.0, 0.0]
    assert "opdock_place_node of plugin 'place' answered '/device:MOON:0'" in stderr
    strict = {"OPDOCK_STRICT_PLUGINS": "1", "OPDOCK_PLUGINS": "place,opdock-cpu"}
    done = site.run(str(PROGRAMS), "nonsense", check=False, **strict)
    assert done.returncode != 0
    assert "which is no candidate" in done.stderr
