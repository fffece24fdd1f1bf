"""`python.distribute.all_reduce`: every way gives every device the same reduction."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import opdock as tf
from opdock.distribute import all_reduces
from opdock.mapping import resolve

SHAPES = [[], [8], [1], [5], [4, 4], [7, 13], [0, 2]]
TASK = "/job:localhost/replica:0/task:{}/device:CPU:{}"


def placed(workers, devices, shape):
    """A tensor on every device, and what each is."""
    values = [
        np.random.RandomState(i).randint(-9, 9, shape).astype(np.float32)
        for i in range(workers * devices)
    ]
    tensors = []
    places = itertools.product(range(workers), range(devices))
    for value, place in zip(values, places, strict=True):
        with tf.device(TASK.format(*place)):
            tensors.append(tf.identity(value))
    return tensors, sum(values)


def run(outputs, workers, devices, total):
    """Checks what every device has: doubled, so that an `un_op` that is left out is seen."""
    assert [t.device for t in outputs] == [
        TASK.format(*place) for place in itertools.product(range(workers), range(devices))
    ]
    with tf.Graph().as_default():
        graph = outputs[0].graph.as_graph_def()
        for node in graph.node:
            node.device = ""  # one process runs what the workers would
        found = tf.import_graph_def(graph, return_elements=[t.name for t in outputs])
        with tf.Session() as sess:
            for value in sess.run(found):
                np.testing.assert_array_equal(value, 2 * total)


def twice(x):
    return x * 2.0


SERVERS = [TASK.format(0, 0), TASK.format(1, 0)]
WAYS = {
    "ring": lambda x, w, d: all_reduces.build_ring_all_reduce(x, w, 1, range(d), tf.add, twice),
    "rings": lambda x, w, d: all_reduces.build_ring_all_reduce(
        x, w, 2, [*range(1, d), 0], tf.add, twice
    ),
    "shuffle": lambda x, w, d: all_reduces.build_shuffle_all_reduce(x, SERVERS, tf.add_n, twice),
    "nccl, ring": lambda x, w, d: all_reduces.build_nccl_then_ring(x, 1, tf.add, twice),
    "nccl, shuffle": lambda x, w, d: all_reduces.build_nccl_then_shuffle(
        x, SERVERS, tf.add, tf.add_n, twice
    ),
    "shuffle, ring": lambda x, w, d: all_reduces.build_shuffle_then_ring(
        x, [TASK.format(i, 0) for i in range(w)], 1, tf.add_n, tf.add, twice
    ),
    "shuffle, shuffle": lambda x, w, d: all_reduces.build_shuffle_then_shuffle(
        x, [TASK.format(i, 0) for i in range(w)], SERVERS, tf.add_n, twice
    ),
}


@pytest.mark.parametrize("workers, devices", [(1, 2), (2, 3), (3, 2)])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("way", WAYS)
def test_every_device_has_the_reduction(way, shape, workers, devices):
    tensors, total = placed(workers, devices, shape)
    run(WAYS[way](tensors, workers, devices), workers, devices, total)


@pytest.mark.parametrize("workers, devices", [(1, 1), (1, 4), (2, 4)])
def test_halving_and_doubling(workers, devices):
    for shape in ([8], [4, 6, 2]):
        tensors, total = placed(workers, devices, shape)
        halved = all_reduces.build_recursive_hd_all_reduce(tensors, tf.add, twice)
        run(halved, workers, devices, total)
        hybrid = all_reduces.build_nccl_then_recursive_hd(tensors, tf.add, twice)
        run(hybrid, workers, devices, total)


def test_a_ring_sends_only_to_the_next_device():
    tensors, _ = placed(1, 4, [8])
    made = all_reduces.build_ring_all_reduce(tensors, 1, 1, [0, 2, 1, 3], tf.add)
    order = [TASK.format(0, i) for i in (0, 2, 1, 3)]
    links = set(zip(order, order[1:] + order[:1], strict=True))
    seen = {
        (source.device, op.device)
        for op in made[0].graph.get_operations()
        for source in op.inputs
        if source.device and op.device and source.device != op.device
    }
    assert seen == links


def test_rings_are_turned():
    pred, rank = all_reduces.ring_permutations(2, 2, [0, 3, 2, 1])
    assert pred == [[5, 2, 3, 0, 1, 6, 7, 4], [1, 2, 7, 0, 5, 6, 3, 4]]
    assert rank == [[0, 3, 2, 1, 4, 7, 6, 5], [2, 1, 0, 3, 6, 5, 4, 7]]
    assert all_reduces.ring_permutations(1, 0, []) == ([], [])


def test_names_are_tensorflows():
    names = {
        "build_ring_all_reduce": all_reduces.build_ring_all_reduce,
        "_ring_permutations": all_reduces.ring_permutations,
        "_flatten_tensors": all_reduces.flatten_tensors,
        "_build_ring_gather": all_reduces.ring_gather,
    }
    for name, value in names.items():
        assert resolve.internal("python.distribute.all_reduce", name) is value


def test_what_cannot_be_reduced_is_refused():
    ways = all_reduces
    three, _ = placed(1, 3, [6])
    with pytest.raises(ValueError, match="power of 2"):
        ways.build_recursive_hd_all_reduce(three, tf.add)
    with pytest.raises(ValueError, match="length 2"):
        ways.build_ring_all_reduce(three[:1], 1, 1, [0], tf.add)
    with pytest.raises(ValueError, match="num_subchunks 4 must be <= num_gpus 3"):
        ways.build_ring_all_reduce(three, 1, 4, [0, 1, 2], tf.add)
    with pytest.raises(ValueError, match="red_op not supported"):
        ways.build_nccl_all_reduce(three, tf.multiply)
    with pytest.raises(ValueError, match="one device per worker"):
        ways.build_shuffle_then_ring(three, SERVERS, 1, tf.add_n, tf.add)
    with pytest.raises(ValueError, match="names no task"):
        ways.build_nccl_then_ring([tf.identity([1.0])] * 2, 1, tf.add)
    with pytest.raises(ValueError, match="statically known shape"):
        ways.build_shuffle_all_reduce([tf.placeholder(tf.float32, [None])], SERVERS, tf.add_n)
    with pytest.raises(ValueError, match="cannot be empty"):
        ways.flatten_tensors([])
