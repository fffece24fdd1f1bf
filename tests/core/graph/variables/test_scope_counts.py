"""How often scopes were opened: unique names, and what leaving a scope forgets."""

from __future__ import annotations

from opdock.graph.variables.scope_counts import ScopeCounts


def opened(counts: ScopeCounts, name: str) -> str:
    unique = counts.unique(name)
    counts.at(unique).count += 1
    return unique


def test_names_count_and_skip_those_that_are_taken() -> None:
    root = ScopeCounts()
    root.at("a_2").count += 1
    assert [opened(root, "a") for _ in range(4)] == ["a", "a_1", "a_3", "a_4"]
    assert opened(root, "b/c") == "b/c"
    assert opened(root, "b/c") == "b/c_1"
    assert opened(root, "b") == "b"


def test_closing_forgets_what_is_below() -> None:
    root = ScopeCounts()
    opened(root, "a")
    inside = root.at("a")
    assert [opened(inside, "x") for _ in range(2)] == ["x", "x_1"]
    inside.close()
    assert opened(inside, "x") == "x"
    assert opened(root, "a") == "a_1"


def test_restoring_frees_numbers() -> None:
    root = ScopeCounts()
    opened(root, "a")
    opened(root.at("a"), "x")
    before = root.copy()
    assert [opened(root, "a") for _ in range(2)] == ["a_1", "a_2"]
    assert opened(root.at("a"), "x") == "x_1"
    root.restore(before)
    assert opened(root, "a") == "a_1"
    assert opened(root.at("a"), "x") == "x_1"


def test_the_next_number_is_found_at_once() -> None:
    """Not by trying all that are taken."""
    root, asked = ScopeCounts(), 0

    class Counted(ScopeCounts):
        def _taken(self, name: str) -> bool:
            nonlocal asked
            asked += 1
            return super()._taken(name)

    root = Counted()
    for _ in range(100):
        opened(root, "a")
    assert asked <= 300
