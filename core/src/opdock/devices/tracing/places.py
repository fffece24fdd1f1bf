"""Tensor arrays in a trace: the elements as rows of one array, and what became of each place.

A tensor array changes in place, so it is told as a variable is: it has a value, a structure of
arrays, which goes through loops and branches. What would be an error, such as a second write to a
place, is a check of values; what needs more than arrays of one shape is not traced.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from opdock.devices.segment import SegmentNode
from opdock.devices.tracing.counting import is_known
from opdock.devices.tracing.deferred import defer
from opdock.devices.tracing.lists import row, with_row
from opdock.shapes import Shape

__all__ = ["ARRAY_OPS", "Places"]

_EMPTY, _WRITTEN, _READ, _CLEARED = range(4)


class Places:
    """A tensor array of one step while that is traced.

    Args:
        xp: the namespace.
        dtype: NumPy's type of the elements.
        size: the number of places, which stays.
        shape: what every element must fit; the first one that is written tells the rest.
        clear: whether reading an element drops it.
        adds: whether writing an element again adds to it, as gradients do.
    """

    def __init__(
        self, xp: Any, dtype: Any, size: int, shape: Shape, clear: bool = False, adds: bool = False
    ) -> None:
        self._xp, self._dtype, self._size = xp, dtype, size
        self._clear, self._adds = clear, adds
        self._declared = shape is not None and None not in shape
        self._rows: Any = None
        self._marks = xp.full((size,), _EMPTY, dtype=xp.uint8)
        self._gradients: dict[str, Places] = {}
        if shape is not None and self._declared:
            self._make(tuple(int(d or 0) for d in shape))

    # ------------------------------------------------------------ as a variable
    def read(self) -> Any:
        """All of it as a structure of arrays."""
        inner = {source: places.read() for source, places in self._gradients.items()}
        return self._rows, self._marks, inner

    def write(self, value: Any) -> None:
        """Gives it another value, of what `read` returned or of the same form."""
        self._rows, self._marks, inner = value
        self._gradients = {source: self._gradients[source] for source in inner}
        for source, places in self._gradients.items():
            places.write(inner[source])

    def form(self) -> Any:
        """The shapes of what `read` gives."""
        inner = {source: places.form() for source, places in self._gradients.items()}
        return None if self._rows is None else tuple(self._rows.shape[1:]), inner

    def fit(self, form: Any) -> None:
        """Makes room for what it will have: all turns of a loop have arrays of the same shapes."""
        shape, inner = form
        if shape is not None and self._rows is None:
            self._make(shape)
        for source, other in inner.items():
            self.gradient(source).fit(other)

    def _make(self, shape: tuple[int, ...]) -> None:
        self._rows = self._xp.zeros((self._size, *shape), dtype=self._dtype)

    # ------------------------------------------------------------ as a tensor array
    @property
    def size(self) -> Any:
        """The number of places."""
        return np.array(self._size, np.int32)

    def gradient(self, source: str) -> Places:
        """The array of gradients that one computation collects."""
        found = self._gradients.get(source)
        if found is None:
            shape = None if self._rows is None else tuple(self._rows.shape[1:])
            found = Places(self._xp, self._dtype, self._size, shape, adds=True)
            self._gradients[source] = found
        return found

    def put(self, index: Any, value: Any) -> None:
        """Stores an element."""
        xp, rows = self._xp, self._fitting(value.shape, value.dtype)
        at = self._inside(index)
        if self._adds:
            self._rows = with_row(xp, rows, at, row(xp, rows, at) + value)
            return
        defer(xp, row(xp, self._marks, at) != _EMPTY)
        self._rows = with_row(xp, rows, at, value)
        self._mark(at, _WRITTEN)

    def take(self, index: Any) -> Any:
        """An element."""
        xp, rows, at = self._xp, self._known_rows(), self._inside(index)
        if not self._adds:
            mark = row(xp, self._marks, at)
            self._check_read(mark)
            self._mark(at, xp.where(mark == _EMPTY, mark, self._after))
        return row(xp, rows, at)

    def take_all(self) -> Any:
        """All elements, along a dimension in front."""
        rows = self._known_rows()
        if not self._adds:
            self._check_read(self._marks)
            self._marks = self._xp.where(self._marks == _EMPTY, self._marks, self._after)
        return rows

    def put_all(self, values: Any) -> None:
        """Stores an element at each place."""
        rows = self._fitting(values.shape[1:], values.dtype)
        if values.shape[0] != self._size:
            raise NotImplementedError("the elements are not as many as the tensor array has places")
        if not self._adds:
            defer(self._xp, self._marks != _EMPTY)
            self._marks = self._xp.full((self._size,), _WRITTEN, dtype=self._xp.uint8)
        self._rows = rows + values if self._adds else values

    def is_all(self, indices: Any) -> bool:
        """Whether these are all places in order."""
        if not is_known(self._xp, indices):
            raise NotImplementedError("the places in the tensor array depend on values")
        return np.array_equal(np.asarray(indices).reshape(-1), np.arange(self._size))

    @property
    def _after(self) -> Any:
        return self._xp.asarray(_CLEARED if self._clear else _READ, dtype=self._xp.uint8)

    def _fitting(self, shape: Any, dtype: Any) -> Any:
        """The rows, for elements of a shape and a type."""
        if self._rows is None:
            self._make(tuple(shape))
        if dtype != self._rows.dtype or tuple(shape) != tuple(self._rows.shape[1:]):
            raise NotImplementedError("the elements of the tensor array differ in shape or type")
        return self._rows

    def _known_rows(self) -> Any:
        if self._rows is None:
            raise NotImplementedError("the shape of the tensor array's elements is not known")
        return self._rows

    def _inside(self, index: Any) -> Any:
        if is_known(self._xp, index):
            if not 0 <= int(index) < self._size:
                raise NotImplementedError(f"the tensor array has no place {int(index)}")
            return int(index)
        at = self._xp.reshape(index, ())
        defer(self._xp, (at < 0) | (at >= self._size))
        return at

    def _check_read(self, marks: Any) -> None:
        if self._clear:
            defer(self._xp, marks == _CLEARED)
        if not self._declared:
            defer(self._xp, marks == _EMPTY)  # whose shape nobody knows

    def _mark(self, at: Any, mark: Any) -> None:
        mark = self._xp.asarray(mark, dtype=self._xp.uint8)
        self._marks = with_row(self._xp, self._marks, at, mark)


# ---------------------------------------------------------------- ops
def _create(xp: Any, node: SegmentNode, size: Any) -> Any:
    attrs = node.attrs
    if attrs["dynamic_size"]:
        raise NotImplementedError("the size of the tensor array is not known")
    dtype, shape = attrs["dtype"].base_dtype.np, attrs["element_shape"]
    places = Places(xp, dtype, int(size), shape, clear=attrs["clear_after_read"])
    return places, xp.zeros((), dtype=xp.float32)


def _write(xp: Any, node: SegmentNode, array: Places, index: Any, value: Any, flow: Any) -> Any:
    array.put(index, value)
    return flow


def _gather(xp: Any, node: SegmentNode, array: Places, indices: Any, flow: Any) -> Any:
    if array.is_all(indices):
        return array.take_all()
    return xp.stack([array.take(i) for i in np.asarray(indices).reshape(-1)])


def _scatter(xp: Any, node: SegmentNode, array: Places, indices: Any, value: Any, flow: Any) -> Any:
    if array.is_all(indices):
        array.put_all(value)
        return flow
    places = np.asarray(indices).reshape(-1)
    if len(places) != value.shape[0]:
        raise NotImplementedError("the places are not as many as the elements")
    for i, place in enumerate(places):
        array.put(place, value[i, ...])
    return flow


def _concat(xp: Any, node: SegmentNode, array: Places, flow: Any) -> Any:
    rows = array.take_all()
    count, first, *rest = rows.shape
    return xp.reshape(rows, (count * first, *rest)), np.full(count, first, np.int64)


def _split(xp: Any, node: SegmentNode, array: Places, value: Any, lengths: Any, flow: Any) -> Any:
    sizes = set(np.asarray(lengths).tolist()) if is_known(xp, lengths) else set()
    if len(sizes) != 1:
        raise NotImplementedError("the elements of the tensor array differ in shape")
    array.put_all(xp.reshape(value, (len(lengths), *sizes, *value.shape[1:])))
    return flow


ARRAY_OPS: Final[Mapping[str, Callable[..., Any]]] = MappingProxyType({
    "TensorArrayV3": _create,
    "TensorArrayGradV3": lambda xp, node, array, flow: (array.gradient(node.attrs["source"]), flow),
    "TensorArrayWriteV3": _write,
    "TensorArrayReadV3": lambda xp, node, array, index, flow: array.take(index),
    "TensorArrayGatherV3": _gather,
    "TensorArrayScatterV3": _scatter,
    "TensorArrayConcatV3": _concat,
    "TensorArraySplitV3": _split,
    "TensorArraySizeV3": lambda xp, node, array, flow: array.size,
    "TensorArrayCloseV3": lambda xp, node, array: None,
})  # fmt: skip
"""What works on tensor arrays: functions of the namespace, the node and its inputs."""
