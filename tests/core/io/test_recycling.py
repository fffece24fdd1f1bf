"""Memory that is used again once nobody holds it."""

from __future__ import annotations

import numpy as np

from opdock.io.recycling import Recycled


def address(array: np.ndarray) -> int:
    """Where an array begins."""
    return array.__array_interface__["data"][0]


def test_memory_comes_again_when_it_was_let_go_of() -> None:
    memory = Recycled(2, 16, 1 << 20)
    first = memory.empty((4, 8), np.float32)
    where = address(first)
    del first
    assert address(memory.empty((8, 4), np.int32)) == where


def test_a_view_of_a_view_keeps_memory() -> None:
    memory = Recycled(2, 16, 1 << 20)
    kept = memory.empty((4, 8), np.float32)[1:, ::2].T
    kept[...] = 7
    for _ in range(5):
        memory.empty((4, 8), np.float32)[...] = 0
    assert (kept == 7).all()


def test_what_is_held_for_ever_makes_room_for_others() -> None:
    memory = Recycled(2, 16, 1 << 20)
    held = [memory.empty((32,), np.uint8) for _ in range(5)]
    assert len({address(a) for a in held}) == 5
    spare = memory.empty((32,), np.uint8)
    where = address(spare)
    del spare
    assert address(memory.empty((32,), np.uint8)) == where


def test_small_large_and_other_arrays_are_not_remembered() -> None:
    memory = Recycled(2, 16, 64)
    for shape, dtype in (((3,), np.uint8), ((65,), np.uint8), ((4,), object), ((0, 5), np.float32)):
        found = memory.empty(shape, np.dtype(dtype))
        assert found.shape == shape and found.dtype == dtype and found.base is None
