"""Two libraries, each in a process: bursts in turns, and no ratio for another answer."""

from __future__ import annotations

from typing import Any

import pytest


class Side:
    """A process that says what a burst took, in the order in which it is asked."""

    def __init__(self, asked: list[str], name: str, seconds: float, value: float) -> None:
        self.asked, self.name, self.seconds, self.value = asked, name, seconds, value

    def ask(self, do: str, **words: Any) -> dict[str, Any]:
        if self.name == "poor":
            return {"missing": True}
        if do == "start":
            return {"first": 0.5, "values": [[[[], [self.value], abs(self.value)]]]}
        if do == "looking":
            return {"seconds": 0.001}
        if self.name == "broken":
            return {"error": "ended with status 1"}
        self.asked.append(self.name)
        return {"times": [self.seconds]}


def sides(theirs: str = "jax", value: float = 1.0) -> tuple[list[str], list[Any]]:
    asked: list[str] = []
    return asked, [Side(asked, "opdock", 0.013, 1.0), Side(asked, theirs, 0.008, value)]


def test_bursts_take_turns_and_looks_at_the_clock_do_not_count():
    import together

    asked, both = sides()
    row = together.measure("run_overhead", both, seconds=0.0)
    assert row is not None
    name, mine, others, first, their_first = row
    assert (name, first, their_first) == ("run_overhead", 0.5, 0.5)
    assert mine == pytest.approx([0.01] * together.LEAST)
    assert others == pytest.approx([0.005] * together.LEAST)
    # The first burst of each warms up.
    assert len(asked) == 2 * (together.LEAST + 1)
    assert asked[:6] == ["opdock", "jax", "jax", "opdock", "opdock", "jax"]
    text = together.table([row], "jax")
    assert "| run_overhead | 10 | 5 | 0.50 | 0.50 | 500 | 500 |" in text
    assert "| geometric mean |  |  | 0.50 |" in text


def test_more_seconds_are_more_bursts():
    import together

    row = together.measure("run_overhead", sides()[1], seconds=20 * together.BURST)
    assert row is not None
    assert (len(row[1]), len(row[2])) == (10, 10)


def test_another_answer_gets_no_ratio():
    import together

    with pytest.raises(RuntimeError, match="run_overhead: the answers differ by"):
        together.measure("run_overhead", sides(value=1.5)[1], seconds=0.0)
    assert together.measure("run_overhead", sides("poor")[1], seconds=0.0) is None
    with pytest.raises(RuntimeError, match="run_overhead: ended with status 1"):
        together.measure("run_overhead", sides("broken")[1], seconds=0.0)


def test_a_side_may_have_a_variable_of_its_own(capsys):
    import compare
    import together

    given = together.assignment("OPDOCK_SOME=1=2")
    sides = compare.Side("opdock"), compare.Side("opdock", variables=(given,))
    setting = compare.Setting(sides, threads=1)
    plain, other = (setting.environment(side) for side in sides)
    assert {**plain, "OPDOCK_SOME": "1=2"} == other
    assert "OPDOCK_SOME" not in plain
    with pytest.raises(SystemExit):
        together.main(["--variable", "OPDOCK_SOME"])
    assert "write NAME=VALUE" in capsys.readouterr().err
