"""Portable kernels of tensor arrays, whose elements are buffers."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from opdock import shapes
from opdock.dtypes import DType
from opdock.kernels.array_api import dims, ints, invalid
from opdock.kernels.expr.elements import join, rows_of, take_rows, unwrap, zeros
from opdock.kernels.portable import portable
from opdock.kernels.select.signature import NodeSig
from opdock.kernels.tensor_arrays import TensorArrayState, shape_of

_COUNTER = itertools.count()


def _array(handle: Any) -> TensorArrayState:
    found = handle if type(handle) is TensorArrayState else unwrap(handle)
    if not isinstance(found, TensorArrayState):
        raise invalid("The handle is not one of a TensorArray.")
    if found.closed:
        raise invalid(f"TensorArray {found.name} has already been closed.")
    return found


def _reader(sig: NodeSig, dtype: DType) -> tuple[Any, DType, Callable[[tuple[int, ...]], Any]]:
    """What a node that reads passes on: its device, the type, and what makes zeros."""
    return sig.device, dtype, lambda shape: zeros(sig, shape, dtype)


def _each(name: str) -> list[str]:
    """An op in its three generations: to a kernel, whatever is the handle is the array."""
    return [f"TensorArray{name}{version}" for version in ("", "V2", "V3")]


@portable(*_each(""), host_inputs=("size",), host_outputs=("handle",))
def create(xp: Any, sig: NodeSig) -> Any:
    """A new array for this step."""
    attrs = sig.attrs
    name = attrs["tensor_array_name"] or sig.name
    older = sig.op != "TensorArrayV3"  # there a flow begins with a constant
    flow = xp.zeros((), dtype=xp.float32)
    if sig.device is not None and not sig.device.is_host:
        flow = sig.device.upload(np.zeros((), np.float32))

    def run(size: Any) -> Any:
        if int(size) < 0:
            raise invalid("Size should be >= 0.")
        # Each of a loop's turns has one of its own.
        own = f"{name}_{next(_COUNTER)}"
        array = TensorArrayState(
            own, attrs["dtype"].base_dtype, int(size), attrs["element_shape"], sig.device,
            attrs["dynamic_size"], attrs["clear_after_read"],
            attrs.get("identical_element_shapes", False),
        )  # fmt: skip
        return array if older else (array, flow)

    return run


@portable(
    "TensorArrayGrad", "TensorArrayGradV2", host_inputs=("handle",), host_outputs=("grad_handle",)
)
def gradient(xp: Any, sig: NodeSig) -> Any:
    """The array of gradients of one gradient computation."""
    source = sig.attrs["source"]
    return lambda handle, flow: _array(handle).gradient(source)


@portable(
    "TensorArrayGradV3", host_inputs=("handle",), host_outputs=("grad_handle",), may_alias={1: 1}
)
@portable(
    "TensorArrayGradWithShape", host_inputs=("handle", "shape_to_prepend"),
    host_outputs=("grad_handle",), may_alias={1: 1},
)  # fmt: skip
def gradient_with_flow(xp: Any, sig: NodeSig) -> Any:
    """The same, with the flow of what comes after; elements may have dimensions in front."""
    source, anew = sig.attrs["source"], sig.attrs.get("_anew", False)
    return lambda handle, flow, prepend=(): (
        _array(handle).gradient(source, tuple(ints(prepend)), anew), flow
    )  # fmt: skip


@portable(*_each("Write"), host_inputs=("handle", "index"), traced=("index",), may_alias={0: 3})
def write(xp: Any, sig: NodeSig) -> Any:
    """Stores one element."""
    dtype, device, add = sig.attrs["T"].base_dtype, sig.device, xp.add

    def run(handle: Any, index: Any, value: Any, flow: Any) -> Any:
        _array(handle).write(int(index), value, device, dtype, add)
        return flow

    return run


@portable(*_each("Read"), host_inputs=("handle", "index"), traced=("index",))
def read(xp: Any, sig: NodeSig) -> Any:
    """One element."""
    device, dtype, unwritten = _reader(sig, sig.attrs["dtype"].base_dtype)

    def run(handle: Any, index: Any, flow: Any) -> Any:
        return _array(handle).take(int(index), device, dtype, unwritten)

    return run


@portable(*_each("Gather"), host_inputs=("handle", "indices"), traced=("indices",))
def gather(xp: Any, sig: NodeSig) -> Any:
    """Elements stacked."""
    stack = _stacker(xp, sig)
    return lambda handle, indices, flow: stack(_array(handle), ints(indices))


@portable("TensorArrayPack", host_inputs=("handle",))
def pack(xp: Any, sig: NodeSig) -> Any:
    """All elements stacked."""
    stack = _stacker(xp, sig)

    def run(handle: Any, flow: Any) -> Any:
        array = _array(handle)
        return stack(array, range(array.filled))

    return run


def _stacker(xp: Any, sig: NodeSig) -> Callable[[TensorArrayState, Sequence[int]], Any]:
    declared = sig.attrs["element_shape"]
    device, dtype, unwritten = _reader(sig, sig.attrs["dtype"].base_dtype)

    def stack(array: TensorArrayState, wanted: Sequence[int]) -> Any:
        if wanted:
            rows = array.take_rows(wanted, device, dtype)
            if rows is not None:
                return rows
            parts = array.take_all(wanted, device, dtype, unwritten)
            given = list(map(shape_of, parts))
            first = given[0]
            if given.count(first) < len(given):
                i = next(i for i, shape in enumerate(given) if shape != first)
                raise invalid(
                    f"TensorArray has inconsistent shapes.  Index {wanted[0]} has shape: "
                    f"{dims(first)} but index {wanted[i]} has shape: {dims(given[i])}"
                )
            if not first:
                return join(xp, xp.stack, parts, dtype)
            # As one after the other they are quicker put together than by dimensions of their own.
            return xp.reshape(join(xp, xp.concat, parts, dtype), (len(parts), *first))
        if dtype is not array.dtype:
            raise array.unexpected(dtype)
        known = shapes.merge(declared, array.element_shape)
        if known is None or None in known:
            raise invalid(
                f"TensorArray has size zero, but element shape {shapes.text(known)} is not fully "
                "defined. Currently only static shapes are supported when packing zero-size "
                "TensorArrays."
            )
        return unwritten((0, *(int(d or 0) for d in known)))

    return stack


@portable(
    *_each("Scatter"), host_inputs=("handle", "indices"), traced=("indices",), may_alias={0: 3}
)
def scatter(xp: Any, sig: NodeSig) -> Any:
    """Rows of a tensor to places of the array."""
    dtype = sig.attrs["T"].base_dtype

    def run(handle: Any, indices: Any, value: Any, flow: Any) -> Any:
        array, places = _array(handle), ints(indices)
        rows = np.shape(value)[0]
        if len(places) != rows:
            raise invalid(
                f"Expected len(indices) == values.shape[0], but saw: {len(places)} vs. {rows}"
            )
        if places and not array.dynamic and max(places) >= len(array):
            raise invalid(
                f"Max scatter index must be < array size ({max(places)} vs. {len(array)})"
            )
        _write_rows(xp, sig, array, places, value, dtype)
        return flow

    return run


@portable("TensorArrayUnpack", host_inputs=("handle",), may_alias={0: 2})
def unpack(xp: Any, sig: NodeSig) -> Any:
    """The rows of a tensor to the first places of the array."""
    dtype = sig.attrs["T"].base_dtype

    def run(handle: Any, value: Any, flow: Any) -> Any:
        array, rows = _array(handle), np.shape(value)[0]
        count = max(len(array), rows if array.dynamic else 0)
        if rows != count:
            raise invalid(
                "Input value must have first dimension equal to the array size "
                f"({rows} vs. {count})"
            )
        _write_rows(xp, sig, array, range(rows), value, dtype)
        array.mark()
        return flow

    return run


def _write_rows(
    xp: Any, sig: NodeSig, array: TensorArrayState, places: Sequence[int], value: Any, dtype: DType
) -> None:
    if not array.adopt(places, value, sig.device, dtype):
        array.write_all(places, rows_of(xp, value), sig.device, dtype, xp.add)


@portable(*_each("Concat"), host_inputs=("handle",), host_outputs=("lengths",))
def concat(xp: Any, sig: NodeSig) -> Any:
    """All elements one after another, and their lengths."""
    rest = sig.attrs["element_shape_except0"]
    device, dtype, unwritten = _reader(sig, sig.attrs["dtype"].base_dtype)

    def run(handle: Any, flow: Any) -> Any:
        array = _array(handle)
        parts = array.take_all(range(array.filled), device, dtype, unwritten)
        if not parts:
            if rest is None or None in rest:
                raise invalid(
                    f"TensorArray has size zero, but element_shape_except0 {shapes.text(rest)} is "
                    "not fully defined. Currently only static shapes are supported when "
                    "concatenating zero-size TensorArrays."
                )
            return unwritten((0, *rest)), np.zeros(0, np.int64)
        given = [shape_of(part) for part in parts]
        _check_joined(given)
        lengths = np.array([shape[0] for shape in given], np.int64)
        return join(xp, xp.concat, parts, dtype), lengths

    return run


def _check_joined(given: Sequence[tuple[int, ...]]) -> None:
    for i, shape in enumerate(given):
        if not shape:
            raise invalid(
                f"Concat saw a scalar shape at index {i} but requires at least vectors.  Did you "
                "mean to call pack?"
            )
        if shape[1:] != given[0][1:]:
            raise invalid(
                "TensorArray has inconsistent shapes.  Index 0 has (excepting dimension 0) shape: "
                f"{dims(given[0][1:])} but index {i} has (excepting dimension 0) shape: "
                f"{dims(shape[1:])}"
            )


@portable(*_each("Split"), host_inputs=("handle", "lengths"), may_alias={0: 3})
def split(xp: Any, sig: NodeSig) -> Any:
    """Consecutive parts of a tensor to the places of the array."""
    dtype = sig.attrs["T"].base_dtype

    def run(handle: Any, value: Any, lengths: Any, flow: Any) -> Any:
        if len(np.shape(lengths)) != 1:
            raise invalid(
                f"Expected lengths to be a vector, received shape: {dims(np.shape(lengths))}"
            )
        if not np.shape(value):
            raise invalid("Expected value to be at least a vector, but received shape: []")
        array, counts = _array(handle), ints(lengths)
        if sum(counts) != np.shape(value)[0]:
            raise invalid(
                "Expected sum of lengths to be equal to values.shape[0], but sum of lengths is "
                f"{sum(counts)} and value's shape is: {dims(np.shape(value))}"
            )
        if not array.dynamic and len(counts) != len(array):
            raise invalid(
                f"TensorArray's size is not equal to the size of lengths ({len(array)} vs. "
                f"{len(counts)}), and the TensorArray is not marked as dynamically resizeable"
            )
        ends = itertools.accumulate(counts)
        parts = [take_rows(xp, value, e - n, e) for e, n in zip(ends, counts, strict=True)]
        array.write_all(range(len(counts)), parts, sig.device, dtype, xp.add)
        array.mark()
        return flow

    return run


@portable(*_each("Size"), host_inputs=("handle",), host_outputs=("size",))
def size(xp: Any, sig: NodeSig) -> Any:
    """The number of places."""
    return lambda handle, flow: np.array(len(_array(handle)), np.int32)


@portable(*_each("Close"), host_inputs=("handle",))
def close(xp: Any, sig: NodeSig) -> Any:
    """Drops the elements; further use is an error."""

    def run(handle: Any) -> None:
        _array(handle).close()

    return run
