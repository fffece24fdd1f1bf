"""Uploads do not wait for the device, and never see what the caller writes afterwards."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import opdock as tf
from opdock_opencl.apart import OwnMemory
from opdock_opencl.shared import _KEPT, _WAITING, SharedMemory, shares
from opdock_opencl.staging import _LIMIT


@pytest.fixture
def apart(opencl, monkeypatch):
    """The device as if it had memory of its own."""
    monkeypatch.setattr(opencl, "_zeros", [])
    monkeypatch.setattr(opencl, "_memory", OwnMemory(opencl.context, opencl.queue))
    return opencl


@pytest.fixture
def shared(opencl, monkeypatch):
    """The device with memory that it shares, and that nobody has used before."""
    if not shares(opencl.cl_device):
        pytest.skip("the first OpenCL device shares no memory with the host")
    monkeypatch.setattr(opencl, "_zeros", [])
    monkeypatch.setattr(opencl, "_memory", SharedMemory(opencl.context, opencl.queue))
    return opencl


@pytest.fixture(params=["apart", "shared"])
def device(request):
    """Each of them."""
    return request.getfixturevalue(request.param)


def _adding(device, array, times=1):
    """The same and 1 more, `times` times."""
    kernel = device.kernel("__kernel void more(__global float* x) { x[get_global_id(0)] += 1; }",
                           "more")  # fmt: skip
    for _ in range(times):
        device.launch(kernel, array.size, array, group=1)
    return array


def test_the_caller_may_write_at_once(device) -> None:
    arrays, kept = [], []
    source = np.zeros(50_000, np.float32)
    for i in range(200):
        source[:] = i
        arrays.append(_adding(device, device.upload(source)))
        kept.append(float(i))
    source[:] = -1
    for array, value in zip(arrays, kept, strict=True):
        np.testing.assert_array_equal(
            device.download(array), np.full(50_000, value + 1, np.float32)
        )


def test_copies_that_arrived_are_dropped(apart) -> None:
    for _ in range(5):
        apart.upload(np.zeros(1000, np.float32))
    apart.synchronize()
    apart.upload(np.zeros(1, np.float32))
    assert len(apart._memory._staging._sent) <= 1
    assert apart._memory._staging._bytes <= 4


def test_what_waits_is_bounded(apart) -> None:
    for _ in range(6):
        apart.upload(np.zeros(_LIMIT // 4 // 4, np.float32))
        assert apart._memory._staging._bytes <= _LIMIT


def test_the_host_writes_no_block_that_is_queued(shared) -> None:
    for i in range(100):
        array = _adding(shared, shared.upload(np.full(20_000, i, np.float32)), 3)
        kept = _adding(shared, array)
        del array
        other = shared.upload(np.zeros(20_000, np.float32))
        assert (shared.download(kept) == i + 4).all() and not shared.download(other).any()
        del kept, other


def test_what_is_done_with_serves_again(shared) -> None:
    memory = shared._memory
    first = shared.upload(np.zeros(1000, np.float32))
    block = first.lease.block
    del first
    assert shared.upload(np.zeros(1000, np.float32)).lease.block is block
    written = _adding(shared, shared.upload(np.zeros(1000, np.float32)))
    block = written.lease.block
    del written  # and it may still be queued, which is no matter for what is queued behind it
    assert shared.allocate((1000,), np.dtype(np.float32)).lease.block is block
    assert memory.active == 0


def test_results_are_handed_over_and_come_back(shared) -> None:
    memory = shared._memory
    array = _adding(shared, shared.upload(np.zeros(10_000, np.float32)))
    block, small = array.lease.block, shared.upload(np.ones(3, np.float32))
    given = shared.surrender(array)
    assert np.shares_memory(given, block.memory) and (given == 1).all() and given.flags.writeable
    assert not np.shares_memory(shared.surrender(small), small.lease.block.memory)
    again = shared.surrender(array)  # there is one owner
    assert not np.shares_memory(again, given)
    del array, small
    part = given[5:]
    del given
    gc.collect()
    assert not any(block in free for free in memory._free.values())
    part[:] = 7
    assert memory.active == 0
    del part
    assert any(block in free for free in memory._free.values())


def test_free_memory_is_bounded(shared) -> None:
    memory = shared._memory
    for i in range(12):
        shared.allocate(((_KEPT >> 4) + i * (1 << 22),), np.dtype(np.int8))
        assert memory._held <= _KEPT
    # Uploads that nobody waits for wait themselves, rather than take ever new memory.
    for _ in range(40):
        _adding(shared, shared.upload(np.zeros(_WAITING >> 4, np.float32)))
    assert memory._held <= _KEPT and memory.active == 0


def test_a_reshaped_array_keeps_its_memory(device) -> None:
    array = device.upload(np.arange(6, dtype=np.float32)).reshape(2, 3)
    others = [device.upload(np.zeros(6, np.float32)) for _ in range(3)]
    np.testing.assert_array_equal(device.download(array), [[0, 1, 2], [3, 4, 5]])
    assert len(others) == 3


def test_views_strides_and_read_only_arrays(device) -> None:
    base = np.arange(24, dtype=np.int32).reshape(4, 6)
    frozen = base.copy()
    frozen.flags.writeable = False
    for array in (base.T, base[::-1], base[:, ::2], frozen, np.int32(5) * np.ones((), np.int32)):
        np.testing.assert_array_equal(device.download(device.upload(array)), array)


def test_feeds_may_be_reused_between_runs(opencl) -> None:
    with tf.Graph().as_default(), tf.device("/device:OPENCL:0"):
        feed = tf.placeholder(tf.float32, [1000])
        total = tf.reduce_sum(feed * 2.0)
        buffer = np.empty(1000, np.float32)
        with tf.Session() as session:
            for i in range(50):
                buffer[:] = i
                assert session.run(total, {feed: buffer}) == 2000 * i
