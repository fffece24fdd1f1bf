"""Orders in which each follows what it needs."""

from __future__ import annotations

from opdock.compiler.ir.order import in_order


def test_as_near_to_the_order_of_places_as_it_goes():
    needs = {"a": ["d"], "b": [], "c": ["elsewhere"], "d": ["c"]}
    assert in_order("abcd", needs.__getitem__, "abcd".index) == ["b", "c", "d", "a"]


def test_what_needs_itself_is_left_out_with_all_that_needs_it():
    needs = {"a": [], "b": ["c"], "c": ["b"], "d": ["c", "a"]}
    assert in_order("abcd", needs.__getitem__, "abcd".index) == ["a"]


def test_of_equal_places_the_first_comes_first() -> None:
    items = [object() for _ in range(6)]
    needs = {items[3]: [items[0]], items[4]: [items[0]]}
    found = in_order(items, lambda item: needs.get(item, ()), lambda item: 7)
    assert found == items
