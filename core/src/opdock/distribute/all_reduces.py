"""All-reduces built of plain ops: a ring, halving and doubling, shards, and two of them together.

Each takes one tensor per device and gives as many, on the same devices, all equal to the reduction
of them all. They differ in what is sent where: that is the only reason to have several.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from opdock.contrib.nccl import all_sum, broadcast
from opdock.graph.nodes.devicespec import DeviceSpec
from opdock.graph.nodes.scopes import colocate_with, device
from opdock.ops.arithmetic import add
from opdock.ops.array import reshape
from opdock.ops.fill import zeros
from opdock.ops.identity import identity
from opdock.ops.joining import concat
from opdock.ops.slicing import slice as slice_of
from opdock.ops.splitting import split
from opdock.shapes import TensorShape

__all__ = [
    "build_nccl_all_reduce", "build_nccl_then_recursive_hd", "build_nccl_then_ring",
    "build_nccl_then_shuffle", "build_recursive_hd_all_reduce", "build_ring_all_reduce",
    "build_shuffle_all_reduce", "build_shuffle_then_ring", "build_shuffle_then_shuffle",
]  # fmt: skip

Tensors = Sequence[Any]
Unary = Callable[[Any], Any] | None
Table = list[list[int]]


def build_ring_all_reduce(
    input_tensors: Tensors, num_workers: int, num_subchunks: int, gpu_perm: Sequence[int],
    red_op: Callable[[Any, Any], Any], un_op: Unary = None,
) -> list[Any]:  # fmt: skip
    """Each device sends a part to the next at every tick: all links of a ring are always busy.

    Args:
        input_tensors: tensors of one known shape, of `num_workers` times as many devices as
            `gpu_perm` has.
        num_workers: how many workers have them.
        num_subchunks: how many parts a device sends at a time, each in a ring of its own.
        gpu_perm: the order of a worker's devices in the first ring.
        red_op: reduces two tensors.
        un_op: what is done with the reduced values.

    Raises:
        ValueError: there are fewer than two tensors, their shapes differ or are not known, or there
            are more parts than devices of a worker.
    """
    if len(input_tensors) < 2:
        raise ValueError("input_tensors must be length 2 or longer")
    parts, shape = flatten_tensors(input_tensors)
    pred, rank = ring_permutations(num_workers, num_subchunks, gpu_perm)
    devices = [part.device for part in parts]
    chunks, padding = ring_gather(parts, devices, num_subchunks, pred, rank, red_op)
    if un_op is not None:
        chunks = [_each(un_op, own) for own in chunks]
    for tick in range(len(parts) - 1):
        for here, before, chunk in _sent(pred, rank, tick + 1):
            with colocate_with(chunks[here][0]):
                chunks[here][chunk] = identity(chunks[before][chunk])
    size = parts[0].shape.num_elements()
    whole = []
    for own in chunks:
        with colocate_with(own[0]):
            joined = concat(own, 0)
            whole.append(slice_of(joined, [0], [size]) if padding else joined)
    return _shaped(whole, shape)


def ring_gather(
    tensors: Tensors, devices: Sequence[str], num_subchunks: int, pred_by_s_d: Table,
    rank_by_s_d: Table, red_op: Callable[[Any, Any], Any],
) -> Any:  # fmt: skip
    """The first round of a ring, after which each device has `num_subchunks` reduced chunks.

    Args:
        tensors: vectors of one length.
        devices: where each is.
        num_subchunks: how many chunks a device sends at a time.
        pred_by_s_d: of `ring_permutations`.
        rank_by_s_d: of `ring_permutations`.
        red_op: reduces two tensors.

    Returns:
        A list of chunks for each device, and how many zeros the last chunk ends with; of one
        tensor, which is reduced already, the tensors.

    Raises:
        ValueError: the tensors are no vectors.
    """
    if len(tensors) < 2:
        return tensors
    chunks = []
    for tensor, where in zip(tensors, devices, strict=True):
        with device(where):
            own, padding = _padded_split(tensor, len(tensors) * num_subchunks)
            chunks.append(own)
    for tick in range(len(tensors) - 1):
        # What a tick reads at the device before is another chunk than that one's own of the tick.
        for here, before, chunk in _sent(pred_by_s_d, rank_by_s_d, tick + 2):
            with device(devices[here]):
                chunks[here][chunk] = red_op(chunks[before][chunk], chunks[here][chunk])
    return chunks, padding


def ring_permutations(
    num_workers: int, num_subchunks: int, gpu_perm: Sequence[int]
) -> tuple[Table, Table]:
    """The rings, one for each chunk that a device sends at a time; a worker's devices are turned.

    Returns:
        By ring and device, the device before it, and its place.

    Raises:
        ValueError: there are no rings, or more than devices of a worker.
    """
    count = len(gpu_perm)
    pred: Table = []
    rank: Table = []
    if not num_workers * count:
        return pred, rank
    if not 0 < num_subchunks <= count:
        raise ValueError(f"num_subchunks {num_subchunks} must be <= num_gpus {count}, and > 0")
    step = count // num_subchunks
    for turn in range(0, step * num_subchunks, step):
        order = [*gpu_perm[turn:], *gpu_perm[:turn]]
        ring = [worker * count + own for worker in range(num_workers) for own in order]
        places = [ring.index(where) for where in range(len(ring))]
        rank.append(places)
        pred.append([ring[place - 1] for place in places])
    return pred, rank


def _sent(pred: Table, rank: Table, behind: int) -> Iterator[tuple[int, int, int]]:
    """What is sent in a tick: a device, the one before it, which sends, and the chunk's number."""
    for ring, (before, places) in enumerate(zip(pred, rank, strict=True)):
        for here, place in enumerate(places):
            yield here, before[here], (place - behind) % len(places) * len(pred) + ring


def build_recursive_hd_all_reduce(
    input_tensors: Tensors, red_op: Callable[[Any, Any], Any], un_op: Unary = None
) -> list[Any]:
    """Pairs of devices exchange halves, at doubling distances, and then the reduced ones back.

    Args:
        input_tensors: tensors of one known shape; how many is a power of two, and divides their
            size.
        red_op: reduces two tensors.
        un_op: what is done with the reduced values.

    Raises:
        ValueError: how many there are is no power of two or does not divide their size, their
            shapes differ or are not known.
    """
    parts, shape = flatten_tensors(input_tensors)
    devices = [tensor.device for tensor in input_tensors]
    count = len(parts)
    if count & (count - 1):
        raise ValueError("num_devices must be a power of 2")
    spans = [1 << hop for hop in range(count.bit_length() - 1)]
    pairs = [[(d, d + span) for d in range(count) if not d & span] for span in spans]
    for pair in [pair for hop in pairs for pair in hop]:
        halves = [split(parts[place], 2) for place in pair]
        for place, ours in zip(pair, zip(*halves, strict=True), strict=True):
            with device(devices[place]):
                parts[place] = red_op(*ours)
    if un_op is not None:
        parts = _each(un_op, parts)
    for pair in [pair for hop in reversed(pairs) for pair in hop]:
        both = [parts[place] for place in pair]
        for place in pair:
            with device(devices[place]):
                parts[place] = concat(both, 0)
    return _shaped(parts, shape)


def build_shuffle_all_reduce(
    input_tensors: Tensors, gather_devices: Sequence[str], red_op: Callable[[list[Any]], Any],
    un_op: Unary = None,
) -> list[Any]:  # fmt: skip
    """Each of some devices reduces a shard of all tensors, as parameter servers do.

    Args:
        input_tensors: tensors of one known shape.
        gather_devices: the devices that reduce.
        red_op: reduces a list of tensors.
        un_op: what is done with the reduced values.

    Raises:
        ValueError: the shapes differ or are not known.
    """
    parts, shape = flatten_tensors(input_tensors)
    shards = _shuffle_gather(parts, gather_devices, red_op)
    if un_op is not None:
        shards = _each(un_op, shards)
    return _shaped(_shuffle_scatter(shards, [part.device for part in parts]), shape)


def _shuffle_gather(
    parts: Tensors, gather_devices: Sequence[str], red_op: Callable[[list[Any]], Any]
) -> list[Any]:
    count = len(gather_devices)
    size = parts[0].shape.num_elements()
    # As TensorFlow cuts: the last shard has what is left.
    sizes = [size // count] * (count - 1)
    sizes.append(size - sum(sizes))
    by_part = []
    for part in parts:
        with colocate_with(part):
            by_part.append(split(part, sizes))
    shards = []
    for where, pieces in zip(gather_devices, zip(*by_part, strict=True), strict=True):
        with device(where):
            shards.append(red_op(list(pieces)))
    return shards


def _shuffle_scatter(shards: Tensors, devices: Sequence[str]) -> list[Any]:
    joined = []
    for where in devices:
        with device(where):
            joined.append(concat(shards, 0))
    return joined


def build_nccl_all_reduce(input_tensors: Tensors, red_op: Any, un_op: Unary = None) -> list[Any]:
    """Each device adds up all tensors, as `tf.contrib.nccl.all_sum` does.

    Args:
        input_tensors: tensors of one shape, all with a device.
        red_op: `tf.add`.
        un_op: what is done with the reduced values.

    Raises:
        ValueError: `red_op` is another, or a tensor has no device.
    """
    if red_op is not add:
        raise ValueError(f"red_op not supported by NCCL all-reduce: {red_op}")
    sums = all_sum(input_tensors)
    return sums if un_op is None else _each(un_op, sums)


def build_nccl_then_ring(
    input_tensors: Tensors, subdiv: int, red_op: Callable[[Any, Any], Any], un_op: Unary = None
) -> list[Any]:
    """`build_nccl_all_reduce` within each worker, `build_ring_all_reduce` across them."""
    return _nccl_then(input_tensors, red_op, _ring_across(subdiv, red_op, un_op))


def build_nccl_then_recursive_hd(
    input_tensors: Tensors, red_op: Callable[[Any, Any], Any], un_op: Unary = None
) -> list[Any]:
    """`build_nccl_all_reduce` within each worker, `build_recursive_hd_all_reduce` across them."""
    across = lambda parts: build_recursive_hd_all_reduce(parts, red_op, un_op)
    return _nccl_then(input_tensors, red_op, across)


def build_nccl_then_shuffle(
    input_tensors: Tensors, gather_devices: Sequence[str], nccl_red_op: Any,
    shuffle_red_op: Callable[[list[Any]], Any], un_op: Unary = None,
) -> list[Any]:  # fmt: skip
    """`build_nccl_all_reduce` within each worker, `build_shuffle_all_reduce` across them."""
    across = lambda parts: build_shuffle_all_reduce(parts, gather_devices, shuffle_red_op, un_op)
    return _nccl_then(input_tensors, nccl_red_op, across)


def build_shuffle_then_ring(
    input_tensors: Tensors, gather_devices: Sequence[str], subdiv: int,
    red_n_op: Callable[[list[Any]], Any], red_op: Callable[[Any, Any], Any], un_op: Unary = None,
) -> list[Any]:  # fmt: skip
    """One device of each worker reduces its tensors, `build_ring_all_reduce` across workers."""
    across = _ring_across(subdiv, red_op, un_op)
    return _shuffle_then(input_tensors, gather_devices, red_n_op, across)


def build_shuffle_then_shuffle(
    input_tensors: Tensors, first_gather_devices: Sequence[str],
    second_gather_devices: Sequence[str], red_op: Callable[[list[Any]], Any], un_op: Unary = None,
) -> list[Any]:  # fmt: skip
    """One device of each worker reduces its tensors, `build_shuffle_all_reduce` across workers."""
    across = lambda parts: build_shuffle_all_reduce(parts, second_gather_devices, red_op, un_op)
    return _shuffle_then(input_tensors, first_gather_devices, red_op, _of_several(across, un_op))


def _ring_across(
    subdiv: int, red_op: Callable[[Any, Any], Any], un_op: Unary
) -> Callable[[Tensors], list[Any]]:
    ring = lambda parts: build_ring_all_reduce(parts, len(parts), subdiv, [0], red_op, un_op)
    return _of_several(ring, un_op)


def _of_several(
    across: Callable[[Tensors], list[Any]], un_op: Unary
) -> Callable[[Tensors], list[Any]]:
    """An all-reduce with its `un_op`, which a lone worker has nothing to do for but that."""

    def reduced(parts: Tensors) -> list[Any]:
        if len(parts) > 1:
            return across(parts)
        return list(parts) if un_op is None else _each(un_op, parts)

    return reduced


def _nccl_then(tensors: Tensors, red_op: Any, across: Callable[[Tensors], list[Any]]) -> list[Any]:
    parts, shape = flatten_tensors(tensors)
    workers = _by_worker(parts)
    up = [build_nccl_all_reduce(own, red_op)[0] for own in workers]
    results = []
    for reduced, own in zip(across(up), workers, strict=True):
        with device(own[0].device):
            sent = broadcast(identity(reduced))
        for part in own:
            with device(part.device):
                results.append(identity(sent))
    return _shaped(results, shape)


def _shuffle_then(
    tensors: Tensors, gather_devices: Sequence[str], red_op: Callable[[list[Any]], Any],
    across: Callable[[Tensors], list[Any]],
) -> list[Any]:  # fmt: skip
    parts, shape = flatten_tensors(tensors)
    workers = _by_worker(parts)
    if len(gather_devices) != len(workers):
        raise ValueError("For shuffle hybrid, gather_devices must contain one device per worker.")
    up = [
        _shuffle_gather(own, [where], red_op)[0]
        for own, where in zip(workers, gather_devices, strict=True)
    ]
    results = []
    for reduced, own in zip(across(up), workers, strict=True):
        results += _shuffle_scatter([reduced], [part.device for part in own])
    return _shaped(results, shape)


def _by_worker(tensors: Tensors) -> list[list[Any]]:
    """Tensors with a task in their device's name, by task."""
    tasks: dict[tuple[str, int, int], list[Any]] = {}
    for tensor in tensors:
        spec = DeviceSpec.from_string(tensor.device)
        if spec.task is None:
            raise ValueError(f"failed to parse device {tensor.device!r}: it names no task")
        task = spec.job or "localhost", spec.replica or 0, spec.task
        tasks.setdefault(task, []).append(tensor)
    return list(tasks.values())


def flatten_tensors(tensors: Tensors) -> tuple[list[Any], TensorShape]:
    """Tensors of one shape as vectors on their devices, and the shape.

    Raises:
        ValueError: there are none, their shapes differ, or it is not known.
    """
    if not tensors:
        raise ValueError("tensors cannot be empty")
    shape = tensors[0].shape
    for tensor in tensors:
        shape = shape.merge_with(tensor.shape)
    if not shape.is_fully_defined():
        raise ValueError("Tensors must have statically known shape.")
    return list(tensors) if len(shape) == 1 else _each(_flat, tensors), shape


def _flat(tensor: Any) -> Any:
    return reshape(tensor, [-1])


def _shaped(vectors: list[Any], shape: TensorShape) -> list[Any]:
    if len(shape) == 1:
        return vectors
    return _each(lambda vector: reshape(vector, shape.as_list()), vectors)


def _padded_split(vector: Any, pieces: int) -> tuple[list[Any], int]:
    """A vector in equal pieces, and how many zeros its last ones needed for that."""
    if len(vector.shape) != 1:
        raise ValueError("input tensor must be 1D")
    missing = -vector.shape.num_elements() % pieces
    with colocate_with(vector):
        if missing:
            vector = concat([vector, zeros([missing], vector.dtype.base_dtype)], 0)
        return split(vector, pieces), missing


def _each(function: Callable[[Any], Any], tensors: Tensors) -> list[Any]:
    """What a function makes of tensors, each on its device."""
    results = []
    for tensor in tensors:
        with colocate_with(tensor):
            results.append(function(tensor))
    return results
