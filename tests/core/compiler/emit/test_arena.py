"""Places in a block: aligned, never two at once, and used again."""

from __future__ import annotations

import bisect
import types

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import opdock as tf
from opdock.compiler.emit import arena
from opdock.compiler.emit.arena import ALIGNMENT, Buffers, Forms, allocate


class Target:
    """A device for buffers, with or without blocks."""

    def __init__(self, arena=True):
        self.device = types.SimpleNamespace(empty=lambda shape, dtype: np.empty(shape, dtype.np))
        if arena:
            self.device.arena = self.places

    @staticmethod
    def places(nbytes, wanted):
        block = np.zeros(nbytes, np.uint8)
        return [np.ndarray(shape, dtype.np, block, at) for at, shape, dtype in wanted]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 400), st.sampled_from([tf.float32, tf.int8, tf.float64]),
                          st.integers(0, 30)), max_size=60))  # fmt: skip
def test_places_in_use_never_meet(requests):
    buffers, place = Buffers(), Target()
    forms = Forms()
    live = []
    for size, dtype, age in requests:
        index = buffers.take(forms.of(place, (size,), dtype))
        offset, nbytes = buffers.planned[index].offset, buffers.planned[index].form.nbytes
        assert offset % ALIGNMENT == 0
        assert offset + nbytes <= buffers.blocks[place].size
        for _, (o, n) in live:
            assert offset + nbytes <= o or o + n <= offset
        live.append((index, (offset, max(nbytes, 1))))
        if age < len(live):
            buffers.give(live.pop(age)[0])
    for index, _ in live:
        buffers.give(index)
    # All free again: one place as large as the block.
    size = buffers.blocks[place].size if requests else 0
    assert not requests or buffers.blocks[place].free == [(0, size)]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 40), st.integers(0, 20)), max_size=60))
def test_the_smallest_place_that_fits_is_taken(requests):
    buffers, place = Buffers(), Target()
    forms = Forms()
    live = []
    for units, age in requests:
        block = buffers.blocks.get(place)
        free, end = ([], 0) if block is None else (block.free, block.size)
        fits = [(size, offset) for offset, size in free if size >= units * ALIGNMENT]
        # Where none fits the block grows, from what is free at its end.
        last = next((offset for offset, size in free if offset + size == end), end)
        index = buffers.take(forms.of(place, (units * ALIGNMENT,), tf.int8))
        assert buffers.planned[index].offset == (min(fits)[1] if fits else last)
        live.append(index)
        if age < len(live):
            buffers.give(live.pop(age))


def test_many_places_are_found_without_a_look_at_each(monkeypatch):
    """Every second of many results is free: what comes next is not compared with all of them."""
    compared = 0

    class Counted(tuple):
        __slots__ = ()

        def __lt__(self, other):
            nonlocal compared
            compared += 1
            return tuple.__lt__(self, other)

    class Bisect:
        bisect_left = staticmethod(lambda found, item: bisect.bisect_left(found, Counted(item)))
        insort = staticmethod(lambda found, item: bisect.insort(found, Counted(item)))

    monkeypatch.setattr(arena, "bisect", Bisect)
    n = 1000
    buffers, place = Buffers(), Target()
    form = Forms().of(place, (4,), tf.float32)
    for index in [buffers.take(form) for _ in range(n)][::2]:
        buffers.give(index)
    for _ in range(n):
        buffers.take(form)
    assert n <= compared <= 30 * n


def test_what_is_free_serves_any_shape():
    buffers, place = Buffers(), Target()
    forms = Forms()
    first = buffers.take(forms.of(place, (100,), tf.float32))
    buffers.give(first)
    second = buffers.take(forms.of(place, (10, 5), tf.float64))
    assert buffers.planned[second].offset == buffers.planned[first].offset
    assert buffers.nbytes == buffers.blocks[place].size == 448
    buffers.give(second)
    assert buffers.take(forms.of(place, (100,), tf.float32)) == first
    made = allocate(buffers.planned, {place: buffers.nbytes})
    assert [m.shape for m in made] == [(100,), (10, 5)]
    assert np.shares_memory(*made)


def test_other_devices_share_buffers_of_one_form():
    buffers, place = Buffers(), Target(arena=False)
    forms = Forms()
    first = buffers.take(forms.of(place, (100,), tf.float32))
    buffers.give(first)
    assert buffers.take(forms.of(place, (50,), tf.float64)) != first
    assert buffers.take(forms.of(place, (100,), tf.float32)) == first
    assert not buffers.blocks
    assert buffers.nbytes == 800
    made = allocate(buffers.planned, {})
    assert not np.shares_memory(*made)


def test_the_hosts_block_is_aligned():
    x = tf.placeholder(tf.float32, [11, 3])
    y = tf.reduce_sum(tf.matmul(tf.matmul(x, tf.ones([3, 7])), tf.ones([7, 5])))
    with tf.Session() as session:
        session.run(y, {x: np.ones((11, 3))})
        (entry,) = session._cache.entries()
    buffers = entry.program.bound.buffers
    assert buffers
    assert all(b.ctypes.data % ALIGNMENT == 0 for b in buffers)
    assert entry.program.plan.planned_bytes == sum(entry.program.plan.blocks.values())


def test_traces_tell_bytes(graph):
    x = tf.placeholder(tf.float32, [32, 32])
    y = tf.matmul(tf.matmul(x, x), x)
    metadata = tf.RunMetadata()
    options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
    with tf.Session() as session:
        session.run(y, {x: np.ones((32, 32))}, options, metadata)
        planned = session.explain(y, {x: np.ones((32, 32))}).memory.planned_bytes
    assert planned == 4096
    stats = {n.node_name: n for d in metadata.step_stats.dev_stats for n in d.node_stats}
    memory = stats[y.op.name].memory[0]
    assert memory.total_bytes == 4096
    assert memory.allocator_bytes_in_use == planned
    nodes = {n.name: n for n in metadata.cost_graph.node}
    last = nodes[y.op.name]
    assert last.output_info[0].size == 4096
    assert [d.size for d in last.output_info[0].shape.dim] == [32, 32]
    assert nodes[y.op.inputs[0].op.name].id in [i.preceding_node for i in last.input_info]
