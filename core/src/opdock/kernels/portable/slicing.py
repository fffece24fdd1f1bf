"""Portable kernels of slices and subscripts."""

from __future__ import annotations

from typing import Any

import numpy as np

from opdock import axes
from opdock.graph.nodes import slicespec
from opdock.kernels.array_api import dims, fails, ints, invalid, is_traced, put, zeros
from opdock.kernels.portable import portable
from opdock.kernels.select.signature import NodeSig


@portable("Slice", host_inputs=("begin", "size"), traced="begin", may_alias={0: 0})
def slice_(xp: Any, sig: NodeSig) -> Any:
    """A block of the input."""
    begin, size = sig.const(1), sig.const(2)
    source = sig.in_shapes[0]
    if begin is not None and size is not None and source is not None and None not in source:
        fixed = axes.block(source, begin, size)
        return lambda tensor, begin, size: tensor[fixed]

    def run(tensor: Any, begin: Any, size: Any) -> Any:
        if not is_traced(xp, begin):
            return tensor[axes.block(tensor.shape, begin, size)]
        lengths = ints(size)
        if -1 in lengths:
            raise NotImplementedError("the size of the slice depends on values")
        axes.block(tensor.shape, [0] * len(lengths), lengths)  # whether it fits anywhere
        ends = [d - n for d, n in zip(tensor.shape, lengths, strict=True)]
        fails(xp, xp.any((begin < 0) | (begin > xp.asarray(ends, dtype=begin.dtype))))
        return xp.part(tensor, [begin[i] for i in range(len(lengths))], lengths)

    return run


def subscript(sig: NodeSig, shape: Any, begin: Any, end: Any, strides: Any) -> slicespec.Resolved:
    """The index tuple of a strided slice, for arrays of a given shape.

    Raises:
        InvalidArgumentError: the specification does not fit.
    """
    bounds = (begin, end, strides)
    numbers = ints(begin), ints(end), ints(strides)
    # What is being traced is a list of numbers, which has no shape.
    given = [tuple(getattr(b, "shape", (len(n),))) for b, n in zip(bounds, numbers, strict=True)]
    if len(given[0]) != 1 or given.count(given[0]) != 3:
        first, second, third = map(dims, given)
        raise invalid(
            "Expected begin, end, and strides to be 1D equal size tensors, but got shapes "
            f"{first}, {second}, and {third} instead."
        )
    try:
        found = slicespec.resolve(tuple(shape), *numbers, sig.attrs)
    except ValueError as e:
        raise invalid(str(e)) from None
    return found


class _Window:
    """What a strided slice takes of an array whose places are picked by values that come later.

    Attributes:
        starts: where it begins, an array for each dimension of which a place is picked.
        shape: of the part, those dimensions kept.
        subscript: of the part, the index of the result.
        result: the shape of the result.
    """

    def __init__(self, xp: Any, sig: NodeSig, shape: Any, begin: Any, strides: Any) -> None:
        steps = ints(strides)
        picked = slicespec.picks(tuple(shape), begin, steps, sig.attrs)
        self.starts, self.shape = [0] * len(shape), list(shape)
        for dim, place in picked.items():
            at = xp.where(place < 0, place + shape[dim], place)
            fails(xp, (at < 0) | (at >= shape[dim]))
            self.starts[dim], self.shape[dim] = at, 1
        first = [0] * len(steps)
        found = subscript(sig, self.shape, first, [1] * len(steps), strides)
        self.subscript, self.result = found.subscript, found.shape


@portable("StridedSlice", host_inputs=("begin", "end", "strides"), traced=("begin", "end"),
          may_alias={0: 0})  # fmt: skip
def strided_slice(xp: Any, sig: NodeSig) -> Any:
    """A part of the input by Python's rules."""
    consts = [sig.const(i) for i in (1, 2, 3)]
    source = sig.in_shapes[0]
    if all(c is not None for c in consts) and source is not None and None not in source:
        fixed = subscript(sig, source, *consts).subscript
        assert fixed is not None
        if all(_step(i) > 0 for i in fixed):
            index = (*fixed, ...)
            return lambda tensor, begin, end, strides: tensor[index]

    def run(tensor: Any, begin: Any, end: Any, strides: Any) -> Any:
        if is_traced(xp, begin, end):
            window = _Window(xp, sig, tensor.shape, begin, strides)
            tensor = xp.part(tensor, window.starts, window.shape)
            found = window.subscript
        else:
            found = subscript(sig, tensor.shape, begin, end, strides).subscript
        index, backwards = forwards(found, tensor.shape)
        # With an ellipsis even a single element comes out as an array.
        out = tensor[(*index, ...)]
        return xp.flip(out, axis=backwards) if backwards else out

    if consts[2] is None or source is None:
        return run
    found = slicespec.template(len(source), ints(consts[2]), sig.attrs)
    return run if found is None else _picking(xp, *found, run)


def _picking(xp: Any, index: list[Any], holes: list[tuple[int, int, int]], otherwise: Any) -> Any:
    """The subscript of a turn: `x[i]`, where only `i` differs from call to call."""

    def pick(tensor: Any, begin: Any, end: Any, strides: Any) -> Any:
        if is_traced(xp, begin, end):
            return otherwise(tensor, begin, end, strides)
        filled = [*index, ...]
        for at, dim, bound in holes:
            place, size = int(begin[bound]), tensor.shape[dim]
            if not -size <= place < size:
                return otherwise(tensor, begin, end, strides)  # which says what is wrong
            filled[at] = place
        return tensor[tuple(filled)]

    return pick


def _step(part: Any) -> int:
    return (part.step or 1) if isinstance(part, slice) else 1


def forwards(index: Any, shape: Any) -> tuple[tuple[Any, ...], tuple[int, ...]]:
    """An index without negative steps, which some namespaces lack, and the axes to flip after it.

    Args:
        index: slices, integers and None, one for each dimension but for None.
        shape: the shape of what is indexed.
    """
    parts: list[Any] = []
    flips: list[int] = []
    dim = axis = 0
    for part in index:
        if _step(part) < 0:
            places = range(*part.indices(shape[dim]))
            part = slice(places[-1], places[0] + 1, -part.step) if places else slice(0, 0)
            flips.append(axis)
        parts.append(part)
        dim += part is not None
        axis += part is None or isinstance(part, slice)
    return tuple(parts), tuple(flips)


@portable("StridedSliceGrad", host_inputs=("shape", "begin", "end", "strides"),
          traced=("begin", "end"))  # fmt: skip
def strided_slice_grad(xp: Any, sig: NodeSig) -> Any:
    """Zeros, with the gradient where the slice was taken."""
    dtype = sig.out_dtypes[0]

    def run(shape: Any, begin: Any, end: Any, strides: Any, dy: Any) -> Any:
        out = zeros(xp, tuple(ints(shape)), dy, dtype)
        if is_traced(xp, begin, end):
            window = _Window(xp, sig, out.shape, begin, strides)
            check_sliced_grad(dy, window.result)
            part = put_part(xp, zeros(xp, window.shape, dy, dtype), window.subscript, dy)
            return xp.set_part(out, window.starts, part)
        found = subscript(sig, out.shape, begin, end, strides)
        check_sliced_grad(dy, found.shape)
        return put_part(xp, out, found.subscript, dy)

    given = [sig.const(i) for i in range(4)]
    if any(c is None for c in given):
        return run
    sizes = tuple(ints(given[0]))
    found = subscript(sig, sizes, *given[1:])
    assert found.subscript is not None
    if any(_step(i) < 0 for i in found.subscript):
        return run
    index = tuple(i for i in found.subscript if i is not None)
    place = np.broadcast_to(np.int8(0), sizes)[index].shape

    def fixed(shape: Any, begin: Any, end: Any, strides: Any, dy: Any) -> Any:
        check_sliced_grad(dy, found.shape)
        value = dy if dy.shape == place else xp.reshape(dy, place)
        return put(xp, zeros(xp, sizes, dy, dtype), index, value)

    return fixed


def check_sliced_grad(dy: Any, shape: Any) -> None:
    """Raises InvalidArgumentError unless a gradient is that of a slice of that shape."""
    if tuple(dy.shape) != tuple(shape):
        raise invalid(f"shape of dy was {dims(dy.shape)} instead of {dims(shape)}")


def check_sliced_value(value: Any, shape: Any) -> None:
    """Raises InvalidArgumentError unless a value can be written to a slice of that shape."""
    if tuple(value.shape) not in (tuple(shape), ()):
        raise invalid(f"shape of value was {dims(value.shape)} instead of {dims(shape)}")


def put_part(xp: Any, out: Any, index: Any, value: Any) -> Any:
    """`put` for any index; new axes are dropped: not every namespace takes them on the left."""
    if None in index:
        kept = tuple(i for i in index if i is not None)
        value = xp.reshape(value, out[forwards(kept, out.shape)[0]].shape)
        index = kept
    index, backwards = forwards(index, out.shape)
    return put(xp, out, index, xp.flip(value, axis=backwards) if backwards else value)


@portable("StridedSliceAssign", host_inputs=("begin", "end", "strides"))
@portable("ResourceStridedSliceAssign", host_inputs=("begin", "end", "strides"))
def strided_slice_assign(xp: Any, sig: NodeSig) -> Any:
    """A variable with another value in a part of it."""
    returns_ref = sig.op == "StridedSliceAssign"

    def run(cell: Any, begin: Any, end: Any, strides: Any, value: Any) -> Any:
        with cell.lock:
            out = xp.asarray(cell.read(), copy=True)
            found = subscript(sig, out.shape, begin, end, strides)
            if 0 in found.shape:  # whatever the value is, none of it is written
                return cell if returns_ref else None
            check_sliced_value(value, found.shape)
            if len(value.shape) == 0:
                value = xp.broadcast_to(value, found.shape)
            cell.write(put_part(xp, out, found.subscript, value))
        return cell if returns_ref else None

    return run
