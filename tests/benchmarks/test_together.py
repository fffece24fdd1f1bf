"""Two libraries in one process: bursts in turns, and no ratio for another answer."""

from __future__ import annotations

from typing import Any

import pytest


class Library:
    """Steps that say of themselves what they took, in the order in which they are called."""

    def __init__(self, called: list[str], name: str, seconds: float, value: float) -> None:
        self.called, self.name, self.seconds, self.value = called, name, seconds, value

    def start(self, workload: str, sizes: dict[str, Any]) -> dict[str, Any]:
        if self.name == "poor":
            return {"missing": True}
        return {"first": 0.5, "values": [[[[], [self.value], abs(self.value)]]]}

    def timed(self) -> tuple[float, None]:
        self.called.append(self.name)
        return self.seconds, None


def libraries(theirs: str = "jax", value: float = 1.0) -> tuple[list[str], list[Library]]:
    called: list[str] = []
    return called, [Library(called, "opdock", 0.01, 1.0), Library(called, theirs, 0.005, value)]


def test_bursts_take_turns_and_have_so_many_steps():
    import together

    called, both = libraries()
    row = together.measure("run_overhead", both, seconds=0.0)
    assert row is not None
    name, mine, others, first, their_first = row
    assert (name, first, their_first) == ("run_overhead", 0.5, 0.5)
    assert mine == pytest.approx([0.01] * together.LEAST)
    assert others == pytest.approx([0.005] * together.LEAST)
    burst = 1 + round(together.BURST / 0.005)  # one before the clock counts
    turns = [called[i] for i in range(1, len(called), burst)]
    assert turns[:4] == ["jax", "opdock", "opdock", "jax"]
    text = together.table([row], "jax")
    assert "| run_overhead | 10 | 5 | 0.50 | 0.50 | 500 | 500 |" in text
    assert "| geometric mean |  |  | 0.50 |" in text


def test_another_answer_gets_no_ratio():
    import together

    with pytest.raises(RuntimeError, match="run_overhead: the answers differ by"):
        together.measure("run_overhead", libraries(value=1.5)[1], seconds=0.0)
    assert together.measure("run_overhead", libraries("poor")[1], seconds=0.0) is None
