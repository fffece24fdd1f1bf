"""Portable kernels of tensor arrays. An array is an object of one step; elements are buffers."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from opdock import shapes
from opdock.dtypes import DType, proto_name
from opdock.kernels.array_api import dims, ints, invalid
from opdock.kernels.expr.elements import Element, join, rows_of, take_rows, unwrap, zeros
from opdock.kernels.portable import portable
from opdock.kernels.select.signature import NodeSig
from opdock.shapes import Shape


class _Slot:
    """One place of an array."""

    __slots__ = ("cleared", "read", "shape", "stored")

    def __init__(self, shape: tuple[int, ...] | None = None) -> None:
        self.stored: Element | None = None
        self.shape = shape
        self.read = self.cleared = False


class TensorArrayState:
    """An array with the arrays of its gradients.

    Args:
        name: for messages.
        dtype: of the elements.
        size: the number of places.
        element_shape: what every element must fit.
        dynamic: whether writing beyond the end makes it longer.
        clear: whether reading an element drops it.
        alike: whether every element must fit the first.
        adds: whether writing an element again adds to it, as gradients do.
    """

    def __init__(
        self, name: str, dtype: DType, size: int, element_shape: Shape,
        dynamic: bool = False, clear: bool = False, alike: bool = False, adds: bool = False,
    ) -> None:  # fmt: skip
        self.name, self.dtype, self.element_shape = name, dtype, element_shape
        self.dynamic, self.clear, self.alike, self.adds = dynamic, clear, alike, adds
        self.slots = [_Slot() for _ in range(size)]
        self.closed = False
        self._lock = threading.RLock()
        self._gradients: dict[str, TensorArrayState] = {}

    def read(self) -> TensorArrayState:
        """What a reference refers to, where an op takes it as a string: still the array."""
        return self

    def gradient(self, source: str, prepend: tuple[int, ...] = ()) -> TensorArrayState:
        """The array of gradients that one computation collects.

        Args:
            source: which computation.
            prepend: dimensions that its elements have in front of those of the array's.
        """
        with self._lock:
            found = self._gradients.get(source)
            if found is None:
                fits = None if self.element_shape is None else (*prepend, *self.element_shape)
                found = TensorArrayState(f"{self.name}@{source}", self.dtype, 0, fits, adds=True)
                found.slots = [
                    _Slot(None if s.shape is None else (*prepend, *s.shape)) for s in self.slots
                ]
                self._gradients[source] = found
            return found

    def write(
        self, places: Sequence[int], values: Sequence[Any], device: Any, dtype: DType,
        add: Callable[[Any, Any], Any],
    ) -> None:  # fmt: skip
        """Stores elements; where a place is taken and the array adds, the sum by `add`.

        Args:
            places: where.
            values: a buffer for each place.
            device: has the buffers.
            dtype: their element type.
            add: of two buffers.

        Raises:
            InvalidArgumentError: an index, the type or a shape does not fit, or a place is taken.
        """
        if dtype is not self.dtype:
            raise invalid(
                f"TensorArray dtype is {proto_name(self.dtype)} but Op is trying to write dtype "
                f"{proto_name(dtype)}."
            )
        with self._lock:
            for index, value in zip(places, values, strict=True):
                if not 0 <= index < len(self.slots):
                    self._grow(index)
                slot, shape = self.slots[index], _shape(value)
                if shape != self.element_shape:
                    self._fit(index, shape)
                if slot.read or slot.stored is not None:
                    value = self._sum(index, slot, value, device, add)
                slot.stored, slot.shape = Element(value, device), shape

    def _fit(self, index: int, shape: tuple[int, ...]) -> None:
        if not shapes.is_compatible(self.element_shape, shape):
            raise self._error(
                f"Could not write to TensorArray index {index} because the value shape is "
                f"{dims(shape)} which is incompatible with the TensorArray's inferred element "
                f"shape: {shapes.text(self.element_shape)} (consider setting "
                "infer_shape=False)."
            )
        if self.alike:
            self.element_shape = shape

    def _sum(
        self, index: int, slot: _Slot, value: Any, device: Any, add: Callable[[Any, Any], Any]
    ) -> Any:
        """What a place that was written or read before has when a value is written there."""
        if slot.read or not self.adds:
            raise self._error(
                f"Could not write to TensorArray index {index} because it has already been "
                f"{'read' if slot.read else 'written to'}."
            )
        return value if slot.stored is None else add(slot.stored.on(device), value)

    def _grow(self, index: int) -> None:
        if index < 0 or not self.dynamic:
            raise self._error(
                f"Tried to write to index {index} but array is not resizeable and size is: "
                f"{len(self.slots)}"
            )
        self.slots += [_Slot() for _ in range(len(self.slots), index + 1)]

    def take(self, index: int) -> Element | tuple[int, ...]:
        """An element, or the shape of the zeros that stand for one that was not written.

        Raises:
            InvalidArgumentError: there is no such element, or it was read before.
        """
        with self._lock:
            if not 0 <= index < len(self.slots):
                raise self._error(
                    f"Tried to read from index {index} but array size is: {len(self.slots)}"
                )
            slot = self.slots[index]
            if slot.cleared:
                raise self._error(
                    f"Could not read index {index} twice because it was cleared after a previous "
                    "read (perhaps try setting clear_after_read = false?)."
                )
            stored = slot.stored
            if stored is None:
                return self._unwritten(index, slot)
            if self.clear:
                slot.stored, slot.cleared = None, True
            slot.read = not self.adds
            return stored

    def _unwritten(self, index: int, slot: _Slot) -> tuple[int, ...]:
        if slot.shape is not None:
            return slot.shape
        known = self.element_shape
        if known is None or None in known:
            raise self._error(
                f"Could not read from TensorArray index {index}.  Furthermore, the element "
                "shape is "
                f"not fully defined: {shapes.text(known)}.  It is possible you are working with a "
                "resizeable TensorArray and stop_gradients is not allowing the gradients to be "
                "written.  If you set the full element_shape property on the forward TensorArray, "
                "the proper all-zeros tensor will be returned instead of incurring this error."
            )
        return tuple(int(d) for d in known if d is not None)

    def _error(self, text: str) -> Exception:
        return invalid(f"TensorArray {self.name}: {text}")


def _shape(value: Any) -> tuple[int, ...]:
    """That of an element; a list of tensors, or another variant, is one thing."""
    return tuple(getattr(value, "shape", ()))


def _array(handle: Any) -> TensorArrayState:
    found = handle if type(handle) is TensorArrayState else unwrap(handle)
    if not isinstance(found, TensorArrayState):
        raise invalid("The handle is not one of a TensorArray.")
    if found.closed:
        raise invalid(f"TensorArray {found.name} has already been closed.")
    return found


def _buffer(xp: Any, sig: NodeSig, found: Element | tuple[int, ...], dtype: DType) -> Any:
    if isinstance(found, Element):
        return found.on(sig.device)
    return zeros(sig, found, dtype)


def _read_many(xp: Any, sig: NodeSig, array: TensorArrayState, indices: Sequence[int]) -> list[Any]:
    return [_buffer(xp, sig, array.take(i), array.dtype) for i in indices]


def _check_dtype(array: TensorArrayState, wanted: DType) -> None:
    if array.dtype is not wanted:
        raise invalid(
            f"TensorArray {array.name} has dtype {array.dtype.name} but the op expects "
            f"{wanted.name}."
        )


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
        array = TensorArrayState(
            name, attrs["dtype"].base_dtype, int(size), attrs["element_shape"],
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
    source = sig.attrs["source"]
    return lambda handle, flow, prepend=(): (
        _array(handle).gradient(source, tuple(ints(prepend))), flow
    )  # fmt: skip


@portable(*_each("Write"), host_inputs=("handle", "index"), traced=("index",), may_alias={0: 3})
def write(xp: Any, sig: NodeSig) -> Any:
    """Stores one element."""
    dtype, device = sig.attrs["T"].base_dtype, sig.device

    def run(handle: Any, index: Any, value: Any, flow: Any) -> Any:
        _array(handle).write((int(index),), (value,), device, dtype, xp.add)
        return flow

    return run


@portable(*_each("Read"), host_inputs=("handle", "index"), traced=("index",))
def read(xp: Any, sig: NodeSig) -> Any:
    """One element."""
    dtype = sig.attrs["dtype"].base_dtype

    def run(handle: Any, index: Any, flow: Any) -> Any:
        array = _array(handle)
        _check_dtype(array, dtype)
        return _buffer(xp, sig, array.take(int(index)), dtype)

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
        return stack(array, range(len(array.slots)))

    return run


def _stacker(xp: Any, sig: NodeSig) -> Callable[[TensorArrayState, Sequence[int]], Any]:
    dtype, declared = sig.attrs["dtype"].base_dtype, sig.attrs["element_shape"]

    def stack(array: TensorArrayState, wanted: Sequence[int]) -> Any:
        _check_dtype(array, dtype)
        if wanted:
            parts = _read_many(xp, sig, array, wanted)
            first = _shape(parts[0])
            for i, part in zip(wanted, parts, strict=True):
                if _shape(part) != first:
                    raise invalid(
                        f"TensorArray has inconsistent shapes.  Index {wanted[0]} has shape: "
                        f"{dims(first)} but index {i} has shape: {dims(np.shape(part))}"
                    )
            return join(xp, xp.stack, parts, dtype)
        known = shapes.merge(declared, array.element_shape)
        if known is None or None in known:
            raise invalid(
                "TensorArray has size zero, but element shape is not fully defined: "
                f"{shapes.text(known)}.  Currently only static shapes are supported when packing "
                "zero-size TensorArrays."
            )
        return _buffer(xp, sig, (0, *(int(d or 0) for d in known)), dtype)

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
        if places and not array.dynamic and max(places) >= len(array.slots):
            raise invalid(
                f"Max scatter index must be < array size ({max(places)} vs. {len(array.slots)})"
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
        count = max(len(array.slots), rows if array.dynamic else 0)
        if rows != count:
            raise invalid(
                "Input value must have first dimension equal to the array size "
                f"({rows} vs. {count})"
            )
        _write_rows(xp, sig, array, range(rows), value, dtype)
        return flow

    return run


def _write_rows(
    xp: Any, sig: NodeSig, array: TensorArrayState, places: Sequence[int], value: Any, dtype: DType
) -> None:
    array.write(places, rows_of(xp, value), sig.device, dtype, xp.add)


@portable(*_each("Concat"), host_inputs=("handle",), host_outputs=("lengths",))
def concat(xp: Any, sig: NodeSig) -> Any:
    """All elements one after another, and their lengths."""
    dtype, rest = sig.attrs["dtype"].base_dtype, sig.attrs["element_shape_except0"]

    def run(handle: Any, flow: Any) -> Any:
        array = _array(handle)
        _check_dtype(array, dtype)
        parts = _read_many(xp, sig, array, range(len(array.slots)))
        if not parts:
            if rest is None or None in rest:
                raise invalid(
                    "TensorArray has size zero, but element_shape_except0 is not fully defined: "
                    f"{shapes.text(rest)}.  Currently only static shapes are supported when "
                    "concatenating zero-size TensorArrays."
                )
            return _buffer(xp, sig, (0, *rest), dtype), np.zeros(0, np.int64)
        for part in parts:
            if not np.shape(part):
                raise invalid("Concat saw a scalar shape at index 0 but requires at least vectors.")
        lengths = np.array([np.shape(p)[0] for p in parts], np.int64)
        return join(xp, xp.concat, parts, dtype), lengths

    return run


@portable(*_each("Split"), host_inputs=("handle", "lengths"), may_alias={0: 3})
def split(xp: Any, sig: NodeSig) -> Any:
    """Consecutive parts of a tensor to the places of the array."""
    dtype = sig.attrs["T"].base_dtype

    def run(handle: Any, value: Any, lengths: Any, flow: Any) -> Any:
        array, counts = _array(handle), ints(lengths)
        if sum(counts) != np.shape(value)[0]:
            raise invalid(
                "Expected sum of lengths to be equal to values.shape[0], but sum of lengths is "
                f"{sum(counts)} and value's shape is: {dims(np.shape(value))}"
            )
        if not array.dynamic and len(counts) != len(array.slots):
            raise invalid(
                f"TensorArray's size is not equal to the size of lengths ({len(array.slots)} vs. "
                f"{len(counts)}), and the TensorArray is not marked as dynamically resizeable"
            )
        ends = itertools.accumulate(counts)
        parts = [take_rows(xp, value, e - n, e) for e, n in zip(ends, counts, strict=True)]
        array.write(range(len(counts)), parts, sig.device, dtype, xp.add)
        return flow

    return run


@portable(*_each("Size"), host_inputs=("handle",), host_outputs=("size",))
def size(xp: Any, sig: NodeSig) -> Any:
    """The number of places."""
    return lambda handle, flow: np.array(len(_array(handle).slots), np.int32)


@portable(*_each("Close"), host_inputs=("handle",))
def close(xp: Any, sig: NodeSig) -> Any:
    """Drops the elements; further use is an error."""

    def run(handle: Any) -> None:
        array = _array(handle)
        array.slots, array.closed = [], True

    return run


__all__ = ["TensorArrayState"]
