"""Work is shared out over threads while that gains, on a clock of the test's own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opdock_cpu.onednn.governed import governed
from opdock_cpu.sharing import Governor, Site

TIMES = st.floats(1e-4, 1e-3)
FEW = settings(max_examples=15, deadline=None)  # each is up to 200,000 calls


@dataclass
class World:
    """A machine on which time passes as calls say: seconds on several threads, and on one."""

    shared: float
    alone: float
    now: float = 0.0
    governor: Governor = field(init=False)

    def __post_init__(self) -> None:
        self.governor = Governor(lambda: self.now)

    def spend(self, site: Site, seconds: float) -> float:
        """Calls for so many seconds; the share of the time that went into the slower way."""
        end, begin, slower = self.now + seconds, self.now, 0.0
        while self.now < end:
            shared = site.shared()
            took = self.shared if shared else self.alone
            slower += took if shared == (self.shared > self.alone) else 0.0
            self.now += took
            site.tell(shared, took)
        return slower / (self.now - begin)


@FEW
@given(alone=TIMES, factor=st.sampled_from([0.5, 0.8, 1.25, 3.0, 20.0]))
def test_the_quicker_way_is_taken_nearly_always(alone: float, factor: float) -> None:
    world = World(alone * factor, alone)
    site = Site(world.governor)
    world.spend(site, 2.0)
    assert world.spend(site, 5.0) < 0.12
    assert site.shared() or factor > 1


@FEW
@given(alone=TIMES, factor=st.sampled_from([1.5, 4.0, 12.0]))
def test_it_follows_the_load_both_ways(alone: float, factor: float) -> None:
    world = World(alone * 0.6, alone)
    site = Site(world.governor)
    world.spend(site, 1.0)
    assert world.governor.shares
    world.shared = alone * factor
    world.spend(site, 1.0)
    assert world.spend(site, 5.0) < 0.12
    world.shared = alone * 0.6
    world.spend(site, 2.0)
    assert world.spend(site, 5.0) == 0.0


def test_what_one_place_learns_holds_for_all() -> None:
    world = World(2e-3, 2e-4)
    first, second = Site(world.governor), Site(world.governor)
    world.spend(second, 1e-3)
    world.spend(first, 0.06)
    assert not second.shared()


@pytest.mark.parametrize(
    ("shared", "alone", "alone_at"), [(0.05, 0.08, (31, 32)), (0.003, 0.01, (1, 2))]
)
def test_long_work_is_shared_whatever_it_gains(
    shared: float, alone: float, alone_at: tuple[int, ...]
) -> None:
    """It is tried on one thread twice: at once, or later where that would make first steps long."""
    world = World(shared, alone)
    site = Site(world.governor)
    taken = []
    for _ in range(50):
        taken.append(site.shared())
        site.tell(taken[-1], shared if taken[-1] else alone)
    assert [i for i, was in enumerate(taken) if not was] == list(alone_at)


def test_what_costs_both_ways_alike_stays_shared() -> None:
    """A machine on which everything takes three times as long, however it is done."""
    world = World(3e-4, 3e-4)
    governor = world.governor
    for _ in range(100_000):
        shared = governor.wanted(1e-4)
        world.now += 3e-4
        governor.judge(shared, 3e-4, 1e-4)
    assert governor._home


class Primitive:
    """Adds one on a thread, or what `bits` says; counts its calls."""

    def __init__(self, bits: float = 1.0) -> None:
        self.bits = bits
        self.calls = 0

    def __call__(self, x: Any, out: Any) -> None:
        self.calls += 1
        np.add(x, np.float32(self.bits), out=out)


def run_often(several: Primitive, make_alone: Callable[[], Any], shared: bool = True) -> None:
    run = governed(several, make_alone, [False, True])
    x, out = np.arange(5, dtype=np.float32), np.empty(5, np.float32)
    for _ in range(8):
        run(x, x if not shared else out)


def test_a_twin_with_other_bits_is_not_used() -> None:
    several, alone = Primitive(), Primitive(1.0000001)
    run_often(several, lambda: alone)
    assert (several.calls, alone.calls) == (8, 1)


def test_a_twin_with_the_same_bits_is_tried() -> None:
    several, alone = Primitive(), Primitive()
    run_often(several, lambda: alone)
    assert alone.calls >= 3
    assert several.calls + alone.calls == 9


@pytest.mark.parametrize("overlap", [True, False])
def test_without_a_twin_or_in_place_there_are_always_threads(overlap: bool) -> None:
    several, alone = Primitive(), Primitive()
    run_often(several, lambda: alone if overlap else None, shared=not overlap)
    assert (several.calls, alone.calls) == (8, 0)
