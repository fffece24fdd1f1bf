"""The small classes of TF's `util`: identity, locks, places, results that are watched."""

from __future__ import annotations

import gc
import threading

import pytest

from opdock.api import logging
from opdock.util import identities, locks, stacks, used


def test_identity_tells_equal_objects_apart() -> None:
    one, other = [1], [1]
    known = identities.ObjectIdentitySet([one, other, one])
    assert len(known) == 2
    assert [x is one for x in known.difference([other])] == [True]
    by_key = identities.ObjectIdentityDictionary()
    by_key[one] = "one"
    assert one in by_key
    assert other not in by_key
    assert identities.Reference(one) == identities.Reference(one)
    assert identities.Reference(one) != identities.Reference(other)


def test_weak_keys_go_with_their_objects() -> None:
    class Key:
        pass

    key = Key()
    by_key = identities.ObjectIdentityWeakKeyDictionary()
    by_key[key] = 1
    seen = identities.ObjectIdentityWeakSet([key])
    assert (by_key[key], len(by_key), len(seen)) == (1, 1, 1)
    del key
    gc.collect()
    assert (len(by_key), len(seen)) == (0, 0)


def test_a_group_lets_its_members_in_and_no_others() -> None:
    lock = locks.GroupLock(2)
    order = []

    def other() -> None:
        with lock.group(1):
            order.append("other")

    with lock.group(0), lock.group(0):
        thread = threading.Thread(target=other)
        thread.start()
        order.append("first")
    thread.join()
    assert order == ["first", "other"]
    with pytest.raises(ValueError, match="should be between 0 and num_groups=2"):
        lock.acquire(2)


def test_places_are_those_of_callers() -> None:
    here = stacks.extract_stack(limit=1)[0]
    assert (here.filename, here.name) == (__file__, "test_places_are_those_of_callers")
    assert stacks.extract_stack(limit=0) == []
    assert stacks.convert_stack([here])[0][3] == "here = stacks.extract_stack(limit=1)[0]"
    stack = stacks.TraceableStack()
    assert stack.push_obj("a") == stacks.TraceableObject.SUCCESS
    assert stack.push_obj("b", offset=10_000) == stacks.TraceableObject.HEURISTIC_USED
    assert [t.filename == __file__ for t in stack.peek_traceable_objs()] == [False, True]
    assert list(stack.peek_objs()) == ["b", "a"]


def test_a_registry_says_where_a_name_was_taken() -> None:
    registry = stacks.Registry("thing")
    registry.register(len, "x")
    assert registry.lookup(b"x") is len
    with pytest.raises(KeyError, match=r"Registering two thing with name 'x'.*test_a_registry"):
        registry.register(abs, "x")
    with pytest.raises(LookupError, match="thing registry has no entry for: y"):
        registry.lookup("y")


def test_a_result_that_nobody_uses_is_told_of(monkeypatch) -> None:
    told: list[str] = []
    monkeypatch.setattr(logging, "error", told.append)

    class Thing:
        size = 3

    @used.should_use_result
    def make() -> Thing:
        return Thing()

    assert isinstance(make(), Thing)
    assert len(told) == 1
    assert "Object was never used" in told[0]
    assert "test_a_result_that_nobody_uses" in told[0]
    assert make().size == 3
    make().mark_used()
    assert len(told) == 1
