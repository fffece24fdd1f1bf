"""Graph passes of an installed plugin: stages, verbs, switches, and blame."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

PROGRAMS = Path(__file__).with_name("passes_programs.py")
STAGES = ("before_place", "after_place", "after_fuse")
X = (0.25, 1.0)


def run(site: Any, *program: str, **environ: str) -> tuple[Any, str]:
    done = site.run(str(PROGRAMS), *program, **environ)
    return json.loads(done.stdout.splitlines()[-1]), done.stderr


def everywhere(factor: float) -> list[list[float]]:
    """The program of that name in plain Python, each tanh times `factor`."""

    def bent(v: float) -> float:
        return factor * math.tanh(v)

    turned = X
    for _ in range(2):
        turned = tuple(bent(v) + x for v, x in zip(turned, X, strict=True))
    last = [bent(v * x) for v, x in zip(turned, X, strict=True)]
    return [[bent(x) for x in X], last]


@pytest.fixture(scope="module")
def stages(site: Any) -> Any:
    return run(site, "stages")[0]


def test_every_stage_of_steps_loops_and_branches(stages: Any) -> None:
    found = stages
    names = {within for _, within in found["log"]}
    loop = next(n for n in names if "turns" in n)
    branch = next(n for n in names if "choice" in n)
    for stage in STAGES:
        assert [stage, ""] in found["log"]
        assert [stage, loop] in found["log"]
        assert [stage, branch] in found["log"]
    for got, wanted in zip(found["plain"], everywhere(1.0), strict=True):
        assert got == pytest.approx(wanted, abs=1e-4)


@pytest.mark.parametrize("stage", STAGES)
def test_what_a_pass_changes_is_what_runs(stages: Any, stage: str) -> None:
    found = stages
    for got, wanted in zip(found[stage], everywhere(2.0), strict=True):
        assert got == pytest.approx(wanted, abs=1e-4)
    assert found[f"{stage}_rows"], "explain shows the node"
    for _, (_, _, why) in found[f"{stage}_rows"]:
        assert f"graph pass 'double_{stage}' of plugin 'passes'" in why


def test_the_verbs(site: Any) -> None:
    found, stderr = run(site, "verbs")
    values, rows = found["checks"]
    assert values == [[1.25, 2.0], [0.25, 1.0]]
    assert not any(op == "CheckNumerics" and how != "removed" for op, how, _ in rows.values())
    assert rows["check"][2] == "graph pass 'drop_checks' of plugin 'passes': not needed any more"

    values, rows = found["straighten"]
    assert values == [[0.75, 3.0]]
    assert {rows[n][1] for n in ("inner", "outer")} == {"removed"}

    values, _ = found["announce"]
    assert values == [[0.5, 1.0]]
    assert "root of [0.25 1]" in stderr

    values, rows = found["twins"]
    assert {"drawn", "drawn_1"} <= rows.keys(), "each has a name, and a stream, of its own"
    assert values == [[0.0, 0.0]], "the same seeds: two streams that agree"

    assert found["unhook"][0] == [[0.5, 1.0]], "the assertion would have failed"

    values, rows = found["try_out"]
    assert values == [[0.75, 3.0]]
    assert {rows[n][1] for n in ("inner", "outer")} == {"removed"}
    values, rows = found["not_tried"]
    assert values == [[0.5, 1.0]]
    assert not any(how == "removed" for _, how, _ in rows.values())


BROKEN = {
    "crash": ("InternalError", "KeyError: 'the recipe'"),
    "answer_nonsense": ("InternalError", "a pass returns a GraphView or None, got 3"),
    "mix_types": ("InternalError", "TypeError: fetch 0 is int32"),
    "look_ahead": ("InternalError", "comes too late for <node"),
    "drop_used": ("InternalError", "takes its value"),
    "invent": ("InternalError", "there is no op type 'pass>Unheard'"),
    "overwrite": ("InternalError", "must begin with _, got 'T'"),
    "nowhere_after_place": ("InternalError", "has no kernel for pass>Nowhere"),
    "nowhere_after_fuse": ("InternalError", "has no kernel for pass>Nowhere"),
    "nowhere_before_place": ("InvalidArgumentError", "No device has a kernel for op pass>Nowhere"),
}


def test_who_broke_it(site: Any) -> None:
    found, _ = run(site, "broken", ",".join(BROKEN))
    for name, (kind, text) in BROKEN.items():
        raised, message, _ = found[name]
        assert raised == kind, (name, message)
        assert text in message
        assert f"graph pass '{name}' of plugin 'passes'" in message
    assert found["crash"][2], "the traceback leads into the plugin"
    assert "failed at before_place" in found["crash"][1]
    # A node that a pass made is the pass's, at the line that made its neighbour.
    assert "passes_programs.py" in found["nowhere_before_place"][1]


def test_switches(site: Any) -> None:
    found, _ = run(site, "switches")
    assert found == {
        "nothing": [False, 3],
        "on": [True, 3],
        "off": [False, 1],
        "both": [False, 3],
        "level": [False, 0],
        "level_on": [True, 0],
    }


def test_switches_of_the_environment(site: Any) -> None:
    on, _ = run(site, "switches", OPDOCK_ENABLE_PASSES="double_after_place")
    assert on["nothing"] == [True, 3]
    off, _ = run(site, "switches", OPDOCK_DISABLE_PASSES="double_before_place,look_after_fuse")
    assert off["nothing"] == [False, 2]
    assert off["on"] == [False, 2], "off beats on"


def test_a_pass_that_nobody_brings(site: Any) -> None:
    message, _ = run(site, "unknown")
    assert "There is no compiler pass 'doubel' to switch on" in message
    assert "double_before_place" in message
