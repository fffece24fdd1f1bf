"""Lists and dicts that are attributes: what they share with plain ones, when they are saved."""

from __future__ import annotations

import copy
import itertools
import json
import pickle
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opdock as tf
from opdock.eager.modes import eager_mode
from opdock.graph.variables.trackable import NoDependency, NotTrackable, Trackable
from opdock.graph.variables.tracked_attributes import AutoTrackable
from opdock.graph.variables.tracked_containers import (
    DictWrapper,
    ListWrapper,
    OrderedDictWrapper,
    wrap,
)
from opdock.train.tracking.util import list_objects


def things(n: int) -> list[Trackable]:
    return [Trackable() for _ in range(n)]


def names(wrapper: Any) -> list[str]:
    return [reference.name for reference in wrapper._checkpoint_dependencies]


# ---------------------------------------------------------------- what they share
def test_a_list_shares_its_items_with_the_one_that_it_wraps() -> None:
    first, second = things(2)
    plain: list[Any] = [first]
    owner = AutoTrackable()
    owner.parts = plain
    owner.parts.append(second)
    assert plain == [first, second] and names(owner.parts) == ["0", "1"]
    plain.append("outside")
    assert owner.parts[-1] == "outside" and len(owner.parts) == 3
    assert isinstance(owner.parts, list) and owner.parts == plain and plain == owner.parts


def test_a_dict_shares_its_items_with_the_one_that_it_wraps() -> None:
    first, second = things(2)
    weights: dict[str, Any] = {}
    owner = AutoTrackable()
    owner.weights = weights
    owner.weights["a"] = first
    weights["b"] = second
    assert weights["a"] is first and owner.weights["b"] is second
    assert list(owner.weights) == ["a", "b"] and {**owner.weights} == weights
    assert isinstance(owner.weights, dict) and owner.weights.get("c", 1) == 1


@pytest.mark.parametrize("change", [
    lambda w: w.append(7), lambda w: w.extend([7, 8]), lambda w: w.insert(1, 7), lambda w: w.pop(),
    lambda w: w.pop(0), lambda w: w.remove(2), lambda w: w.clear(), lambda w: w.sort(reverse=True),
    lambda w: w.sort(key=lambda v: -v), lambda w: w.reverse(), lambda w: w.__delitem__(0),
    lambda w: w.__delitem__(slice(0, 2)), lambda w: w.__setitem__(-1, 9),
    lambda w: w.__setitem__(slice(1, 2), [4, 5, 6]), lambda w: w.__setitem__(slice(None), []),
    lambda w: w.__iadd__([4]), lambda w: w.__imul__(2), lambda w: w.__imul__(0),
])  # fmt: skip
def test_a_list_changes_as_a_plain_one_does(change: Callable[[Any], Any]) -> None:
    expected, wrapped = [3, 1, 2], [3, 1, 2]
    wrapper = ListWrapper(wrapped)
    found = change(wrapper)
    told = change(expected)
    assert (found is wrapper) if told is expected else found == told
    # As items, as what it wraps, and as what code in C reads without asking.
    assert list(wrapper) == wrapped == expected
    assert list.__len__(wrapper) == len(expected) and list.copy(wrapper) == expected
    assert json.dumps(wrapper) == json.dumps(expected)
    assert np.array(wrapper).tolist() == expected


@pytest.mark.parametrize("change", [
    lambda w: w.update(b=5), lambda w: w.update({"c": 1}, d=2), lambda w: w.setdefault("z", 1),
    lambda w: w.setdefault("a", 9), lambda w: w.pop("a"), lambda w: w.pop("none", 3),
    lambda w: w.popitem(), lambda w: w.clear(), lambda w: w.__delitem__("b"),
    lambda w: w.__ior__({"x": 1}), lambda w: w.__setitem__(3, 4),
])  # fmt: skip
@pytest.mark.parametrize("kind", [dict, OrderedDict])
def test_a_dict_changes_as_a_plain_one_does(
    change: Callable[[Any], Any], kind: type[dict[Any, Any]]
) -> None:
    expected, wrapped = kind(a=1, b=2), kind(a=1, b=2)
    wrapper = wrap(wrapped)
    found, told = change(wrapper), change(expected)
    assert (found is wrapper) if told is expected else found == told
    assert wrapper == wrapped == expected and list(wrapper.items()) == list(expected.items())
    assert json.dumps(wrapper) == json.dumps(expected) and dict(wrapper) == dict(expected)
    assert isinstance(wrapper, kind) and list(reversed(wrapper)) == list(reversed(expected))
    assert {**wrapper} == dict(expected) and (wrapper | {"q": 1}) == (expected | {"q": 1})


def test_the_order_of_an_ordered_dict() -> None:
    wrapper = wrap(OrderedDict(a=1, b=2, c=3))
    wrapper.move_to_end("a")
    assert list(wrapper) == ["b", "c", "a"] and wrapper.popitem(last=False) == ("b", 2)
    assert isinstance(wrapper, OrderedDictWrapper) and json.dumps(wrapper) == '{"c": 3, "a": 1}'


def test_comparisons_sums_and_copies() -> None:
    a, b = things(2)
    assert ListWrapper([a]) == [a] == ListWrapper([a]) != [b]
    assert ListWrapper([1]) < [2] <= ListWrapper([2]) > ListWrapper([1]) >= [1]
    assert [a] + ListWrapper([b]) == [a, b] == ListWrapper([a]) + [b]
    assert 2 * ListWrapper([1]) == [1, 1] and ListWrapper([1, 2]).index(2) == 1
    for wrapper in (ListWrapper([1, [2]]), DictWrapper({"a": [2]})):
        for copied in (
            copy.copy(wrapper),
            copy.deepcopy(wrapper),
            pickle.loads(pickle.dumps(wrapper)),
        ):
            assert type(copied) is type(wrapper) and copied == wrapper and copied is not wrapper
        with pytest.raises(TypeError, match="unhashable"):
            hash(wrapper)


def test_items_can_be_added_and_taken_at_a_constant_price() -> None:
    looked = 0

    class Counted(ListWrapper):
        def _as_seen(self) -> bool:
            nonlocal looked
            looked += 1
            return super()._as_seen()

    wrapper = Counted([])
    for i in range(2000):
        wrapper.append(i)
        wrapper[i] = -i
    for _ in range(1000):
        wrapper.pop()
    # At the first change after which it cannot be saved.
    assert len(wrapper) == 1000 and looked == 1


# ---------------------------------------------------------------- when they are saved
CHANGES: dict[str, Callable[[Any], Any]] = {
    "pop": lambda w: w.pop(),
    "remove": lambda w: w.remove(w[0]),
    "clear": lambda w: w.clear(),
    "insert": lambda w: w.insert(0, Trackable()),
    "sort": lambda w: w.sort(key=id),
    "reverse": lambda w: w.reverse(),
    "__delitem__": lambda w: w.__delitem__(0),
    "__delslice__": lambda w: w.__delitem__(slice(0, 1)),
    "__setitem__": lambda w: w.__setitem__(0, 3),
    "__setslice__": lambda w: w.__setitem__(slice(0, 1), [3]),
    "__imul__": lambda w: w.__imul__(-1),
}


@pytest.mark.parametrize("by", CHANGES)
def test_a_list_tells_which_change_it_cannot_be_saved_after(by: str, tmp_path: Path) -> None:
    owner = tf.train.Checkpoint(parts=things(3))
    CHANGES[by](owner.parts)
    owner.parts.append(Trackable())
    with eager_mode(), pytest.raises(ValueError, match=f"Unable to save .* change was {by}"):
        owner.save(str(tmp_path / "c"))
    assert not list(tmp_path.iterdir())


def test_untracked_items_of_a_list_may_be_replaced() -> None:
    thing, other = things(2)
    wrapper = ListWrapper([1, thing, 2])
    wrapper[0], wrapper[-1] = "a", other
    wrapper[:1] = ["b"]
    wrapper[1] = thing
    assert names(wrapper) == ["1", "2"] and wrapper == ["b", thing, other]


@pytest.mark.parametrize("taken", [
    lambda w: w.pop("a"), lambda w: w.popitem(), lambda w: w.clear()
])  # fmt: skip
def test_a_dict_from_which_a_value_was_taken_cannot_be_saved(taken: Any) -> None:
    wrapper = DictWrapper({"a": Trackable()})
    taken(wrapper)
    with pytest.raises(ValueError, match="Unable to save .*'a' was taken out"):
        names(wrapper)
    plain = DictWrapper({"a": 1, "b": Trackable()})
    plain.pop("a")
    plain["b"] = {}
    assert names(plain) == ["b"]
    del plain["b"]
    assert names(plain) == []


def test_keys_that_name_no_dependency() -> None:
    wrapper = DictWrapper({1: 2, "a": Trackable()})
    wrapper[2] = NoDependency([3])
    wrapper[3] = NoDependency(Trackable())
    assert names(wrapper) == ["a"]
    wrapper[4] = []
    with pytest.raises(ValueError, match="non-string key .*: 4"):
        names(wrapper)
    wrapper[4] = 5
    assert names(wrapper) == ["a"]


@pytest.mark.parametrize("first", [None, lambda w: w.append(Trackable())])
@pytest.mark.parametrize("change", [
    lambda p: p.append(1), lambda p: p.pop(), lambda p: p.__setitem__(0, Trackable()),
    lambda p: p.reverse(),
])  # fmt: skip
def test_changes_from_outside_are_told(change: Any, first: Any) -> None:
    plain: list[Any] = [1, Trackable(), Trackable()]
    wrapper = ListWrapper(plain)
    assert names(wrapper) == ["1", "2"]
    change(plain)
    if first is not None:
        first(wrapper)
    for unfit in (copy.copy(wrapper), wrapper, copy.deepcopy(wrapper)):
        with pytest.raises(ValueError, match="The wrapped list was modified outside the wrapper"):
            names(unfit)
    assert list.copy(wrapper) == plain


def test_changes_of_a_dict_from_outside_are_told() -> None:
    plain: dict[str, Any] = {"a": 1}
    for change in (lambda: plain.update(b=[]), lambda: plain.update(a=2), plain.clear):
        wrapper = DictWrapper(plain)
        change()
        with pytest.raises(ValueError, match="The wrapped dictionary was modified outside"):
            names(wrapper)
        wrapper["c"] = 1
        with pytest.raises(ValueError, match="modified outside"):
            names(wrapper)


def test_equal_values_from_outside_are_no_change() -> None:
    plain: list[Any] = [1000.5, np.ones(2), "a" * 50]
    wrapper = ListWrapper(plain)
    plain[0], plain[2] = float("1000.5"), "".join(itertools.repeat("a", 50))
    assert names(wrapper) == []
    plain[1] = np.ones(3)
    with pytest.raises(ValueError, match="modified outside"):
        names(wrapper)


def test_ordered_dicts_are_dependencies_and_nested_ones_too(tmp_path: Path) -> None:
    with eager_mode():
        saved = tf.train.Checkpoint(d=OrderedDict(b=[tf.Variable(1.0)], a={"x": tf.Variable(2.0)}))
        path = saved.save(str(tmp_path / "c"))
        again = tf.train.Checkpoint(d=OrderedDict(b=[], a={}))
        again.restore(path)
        again.d["b"].append(tf.Variable(0.0))
        again.d["a"]["x"] = tf.Variable(0.0)
        assert again.d["b"][0].numpy() == 1.0 and again.d["a"]["x"].numpy() == 2.0


def test_what_is_marked_as_not_trackable_is_refused() -> None:
    class Layer(AutoTrackable, NotTrackable):
        pass

    owner = AutoTrackable()
    owner.part = Layer()
    with pytest.raises(NotImplementedError, match="does not support object-based saving"):
        list_objects(owner)
