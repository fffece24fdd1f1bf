"""Portable kernels of tensor lists: many elements as one tensor, and lists in tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from opdock import dtypes, shapes
from opdock.dtypes import DType
from opdock.kernels.array_api import dims, ints, invalid
from opdock.kernels.expr.elements import Element, element, join, take_rows, unwrap, zeros
from opdock.kernels.portable import portable
from opdock.kernels.select.signature import NodeSig
from opdock.kernels.tensor_lists import (
    NOTHING,
    Item,
    TensorList,
    complete,
    element_shape,
    list_of,
    merged,
    pushed,
    shape_from,
)
from opdock.shapes import Shape


# ---------------------------------------------------------------- many elements of one shape
def _stacked(
    xp: Any, sig: NodeSig, items: Sequence[Item], shape: tuple[int, ...], dtype: DType
) -> Any:
    if dtype is dtypes.variant:
        out = np.empty(len(items), object)
        out[:] = [NOTHING if i is None else i.value for i in items]
        return out
    if not items:
        return zeros(sig, (0, *shape), dtype)
    parts = [zeros(sig, shape, dtype) if i is None else i.on(sig.device) for i in items]
    return join(xp, xp.stack, parts, dtype)


@portable("TensorListStack", host_inputs=("input_handle", "element_shape"))
def stack(xp: Any, sig: NodeSig) -> Any:
    """All elements as one tensor."""
    dtype, wanted = sig.out_dtypes[0], sig.attrs["num_elements"]

    def run(handle: Any, shape: Any) -> Any:
        items = list_of(handle, dtype)
        if wanted not in (-1, len(items)):
            raise invalid(
                f"Operation expected a list with {wanted} elements but got a list with "
                f"{len(items)} elements."
            )
        known = merged(shape_from(shape), items.known)
        if not len(items):
            complete(
                known, "Tried to stack elements of an empty list with non-fully-defined "
                "element_shape: ",
            )  # fmt: skip
        full = complete(
            element_shape(known, items.items), "Tried to stack list which only contains "
            "uninitialized tensors and has a non-fully-defined element_shape: ",
        )  # fmt: skip
        return _stacked(xp, sig, items.items, full, dtype)

    return run


@portable("TensorListGather", host_inputs=("input_handle", "indices", "element_shape"))
def gather(xp: Any, sig: NodeSig) -> Any:
    """Some elements as one tensor."""
    dtype = sig.out_dtypes[0]

    def run(handle: Any, indices: Any, shape: Any) -> Any:
        items, wanted = list_of(handle, dtype), ints(indices)
        known = merged(shape_from(shape), items.known)
        if not wanted:
            complete(known, "Tried to gather 0-elements from a list with non-fully-defined shape: ")
        for i in wanted:
            if not 0 <= i < len(items):
                raise invalid(f"Index {i} out o range; list only has {len(items)} elements.")
        found = [items.items[i] for i in wanted]
        full = complete(
            element_shape(known, found), "Tried to gather uninitialized tensors from a list with "
            "non-fully-defined element_shape: ",
        )  # fmt: skip
        return _stacked(xp, sig, found, full, dtype)

    return run


def _rows(xp: Any, sig: NodeSig, tensor: Any, dtype: DType) -> list[Element]:
    """The rows of a tensor as elements."""
    shape = tuple(np.shape(tensor))
    if not shape:
        raise invalid(f"Tensor must be at least a vector, but saw shape: {dims(shape)}")
    if dtype is dtypes.variant:
        return [element(unwrap(value), sig) for value in tensor]
    parts = (take_rows(xp, tensor, i, i + 1) for i in range(shape[0]))
    return [element(xp.reshape(xp.asarray(part), shape[1:]), sig) for part in parts]


def _declared(shape: Any, tensor: Any) -> Shape:
    known, rest = shape_from(shape), tuple(np.shape(tensor))[1:]
    if not shapes.is_compatible(known, rest):
        raise invalid(
            f"Specified a list with shape {shapes.text(known)} from a tensor with shape "
            f"{dims(rest)}"
        )
    return known


@portable("TensorListFromTensor", host_inputs=("element_shape",), host_outputs=("output_handle",))
def from_tensor(xp: Any, sig: NodeSig) -> Any:
    """A list of the rows of a tensor."""
    dtype = sig.in_dtypes[0]

    def run(tensor: Any, shape: Any) -> TensorList:
        rows = _rows(xp, sig, tensor, dtype)
        return TensorList(dtype, _declared(shape, tensor), rows)

    return run


@portable(
    "TensorListScatter",
    host_inputs=("indices", "element_shape"),
    host_outputs=("output_handle",),
)
@portable(
    "TensorListScatterV2",
    host_inputs=("indices", "element_shape", "num_elements"),
    host_outputs=("output_handle",),
)
def scatter(xp: Any, sig: NodeSig) -> Any:
    """A list whose elements at some places are the rows of a tensor."""
    dtype = sig.in_dtypes[0]

    def run(tensor: Any, indices: Any, shape: Any, count: Any = -1) -> TensorList:
        size, places = int(count), ints(indices)
        if size < -1:
            raise invalid(f"TensorListScatter expects num_elements >= -1, found: {size}")
        rows = _rows(xp, sig, tensor, dtype)
        known = _declared(shape, tensor)
        if len(places) != len(rows):
            raise invalid(
                f"Invalid number of rows in input tensor. Expected: {len(places)} "
                f"Actual: {len(rows)}"
            )
        for i in places:
            if i < 0:
                raise invalid("Indices in TensorListScatter must all be non-negative.")
            if size != -1 and i >= size:
                raise invalid(
                    f"TensorListScatter: Trying to scatter at index {i} in list with size {size}"
                )
        return _scattered(TensorList(dtype, known, [None] * max(size, 0)), places, rows)

    return run


def _scattered(items: TensorList, places: list[int], rows: Sequence[Item]) -> TensorList:
    out = list(items.items)
    out += [None] * (max(places, default=-1) + 1 - len(out))
    for place, row in zip(places, rows, strict=True):
        out[place] = row
    return items.having(out)


@portable(
    "TensorListScatterIntoExistingList",
    host_inputs=("input_handle", "indices"),
    host_outputs=("output_handle",),
)
def scatter_into(xp: Any, sig: NodeSig) -> Any:
    """The rows of a tensor at some places of a list."""
    dtype = sig.attrs["element_dtype"].base_dtype

    def run(handle: Any, tensor: Any, indices: Any) -> TensorList:
        items, places = list_of(handle, dtype), ints(indices)
        if np.ndim(indices) != 1:
            raise invalid(
                f"Expected indices to be a vector, but received shape: {dims(np.shape(indices))}"
            )
        rows = _rows(xp, sig, tensor, dtype)
        if len(places) != len(rows):
            raise invalid(
                f"Expected len(indices) == tensor.shape[0], but saw: {len(places)} vs. {len(rows)}"
            )
        if min(places, default=0) < 0:
            raise invalid("Indices in TensorListScatter must all be non-negative.")
        return _scattered(items, places, rows)

    return run


# ---------------------------------------------------------------- rows one after the other
@portable("TensorListConcat", host_inputs=("input_handle",), host_outputs=("lengths",))
@portable(
    "TensorListConcatV2",
    host_inputs=("input_handle", "element_shape", "leading_dims"),
    host_outputs=("lengths",),
)
def concat(xp: Any, sig: NodeSig) -> Any:
    """The elements one after the other; for those that were not written, zeros."""
    dtype = sig.out_dtypes[0]
    declared: Shape = sig.attrs.get("element_shape")

    def run(handle: Any, shape: Any = None, leading_dims: Any = ()) -> Any:
        items, given = list_of(handle, dtype), ints(leading_dims)
        known = merged(declared if shape is None else shape_from(shape), items.known)
        if known is not None and not known:
            raise invalid("Concat requires elements to be at least vectors, found scalars instead.")
        if not len(items):
            rest = complete(
                None if known is None else known[1:], "All except the first dimension must be "
                "fully defined when concating an empty tensor list. element_shape: ",
            )  # fmt: skip
            # An empty list stands for zeros: the lengths tell how many.
            return zeros(sig, (sum(given), *rest), dtype), np.array(given, np.int64)
        first, full = _concat_shape(items, known)
        lengths = [_rows_in(item, i, first, given) for i, item in enumerate(items.items)]
        parts = [
            zeros(sig, (n, *full), dtype) if item is None else item.on(sig.device)
            for n, item in zip(lengths, items.items, strict=True)
        ]
        return join(xp, xp.concat, parts, dtype), np.array(lengths, np.int64)

    return run


def _concat_shape(items: TensorList, known: Shape) -> tuple[int | None, tuple[int, ...]]:
    """The first dimension where all elements agree on it, and the others."""
    first, rest = (None, None) if known is None else (known[0], known[1:])
    firsts = set()
    for i, item in enumerate(items.items):
        if item is None:
            continue
        shape = tuple(np.shape(item.value))
        if not shape:
            raise invalid(f"Concat saw a scalar shape at index {i} but requires at least vectors.")
        rest = merged(rest, shape[1:])
        firsts.add(shape[0])
        if first is not None and shape[0] != first:
            raise invalid(
                "First entry of element_shape input does not match the first dim of list element "
                f"at index: {i} Expected: {first} Actual: {shape[0]}"
            )
    full = complete(
        rest, "Trying to concat list with only uninitialized tensors but "
        "element_shape_except_first_dim_ is not fully defined: ",
    )  # fmt: skip
    return (firsts.pop() if first is None and len(firsts) == 1 else first), full


def _rows_in(item: Item, index: int, first: int | None, given: list[int]) -> int:
    if item is not None:
        return int(np.shape(item.value)[0])
    if index < len(given):
        return given[index]
    if first is None:
        raise invalid(
            f"List contains uninitialized tensor at index {index} but leading_dims has only "
            f"{len(given)} elements."
        )
    return first


@portable(
    "TensorListSplit",
    host_inputs=("element_shape", "lengths"),
    host_outputs=("output_handle",),
)
def split(xp: Any, sig: NodeSig) -> Any:
    """A list of consecutive rows."""
    dtype = sig.in_dtypes[0]

    def run(tensor: Any, shape: Any, lengths: Any) -> TensorList:
        known, counts = shape_from(shape), ints(lengths)
        _check_split(tuple(np.shape(tensor)), known, np.shape(lengths))
        total = np.shape(tensor)[0]
        start, parts = 0, []
        for count in counts:
            if count < 0:
                raise invalid(f"Invalid value in lengths: {count}")
            if start + count > total:
                raise invalid(
                    f"Attempting to slice [{start}, {start + count}] from tensor with length "
                    f"{total}"
                )
            parts.append(element(take_rows(xp, tensor, start, start + count), sig))
            start += count
        if start != total:
            raise invalid(
                f"Unused values in tensor. Length of tensor: {total} Values used: {start}"
            )
        return TensorList(dtype, known, parts)

    return run


def _check_split(shape: tuple[int, ...], known: Shape, lengths: tuple[int, ...]) -> None:
    if known is not None and not known:
        raise invalid(
            "TensorListSplit requires element_shape to be at least of rank 1, but saw: "
            f"{shapes.text(known)}"
        )
    if not shape:
        raise invalid(f"Tensor must be at least a vector, but saw shape: {dims(shape)}")
    if known is not None and not shapes.is_compatible(known[1:], shape[1:]):
        raise invalid(
            f"tensor shape {dims(shape)} is not compatible with element_shape {shapes.text(known)}"
        )
    if len(lengths) != 1:
        raise invalid(f"Expected lengths to be a vector, received shape: {dims(lengths)}")


# ---------------------------------------------------------------- tensors of lists
def _handles(lists: Sequence[TensorList], shape: tuple[int, ...]) -> Any:
    if not shape:
        return lists[0]
    out = np.empty(len(lists), object)
    out[:] = lists
    return out.reshape(shape)


@portable(
    "TensorListPushBackBatch", host_inputs=("input_handles",), host_outputs=("output_handles",)
)
def push_batch(xp: Any, sig: NodeSig) -> Any:
    """Each row at the end of the list at its place."""
    dtype = sig.attrs["element_dtype"].base_dtype

    def run(handles: Any, tensor: Any) -> Any:
        if np.ndim(handles) != 1:
            raise invalid(
                f"Expected input_handles to be a vector, but saw shape: {dims(np.shape(handles))}"
            )
        lists = [list_of(handle, dtype) for handle in handles]
        rows = _rows(xp, sig, tensor, dtype)
        if len(lists) != len(rows):
            raise invalid(
                "Expected tensor.shape[0] == input_handles.size, but saw "
                f"{len(rows)} vs. {len(lists)}"
            )
        pairs = zip(lists, rows, strict=True)
        out = [pushed(items, row, f" at index {i}") for i, (items, row) in enumerate(pairs)]
        return _handles(out, tuple(np.shape(handles)))

    return run


@portable("TensorListConcatLists", host_inputs=("input_a", "input_b"), host_outputs=("output",))
def concat_lists(xp: Any, sig: NodeSig) -> Any:
    """The elements of one list behind those of another."""
    dtype = sig.attrs["element_dtype"].base_dtype

    def run(a: Any, b: Any) -> Any:
        if np.shape(a) != np.shape(b):
            raise invalid(
                f"Incompatible input TensorList tensor shapes: {dims(np.shape(a))} vs. "
                f"{dims(np.shape(b))}"
            )
        pairs = zip(_typed(a, dtype, "input_a"), _typed(b, dtype, "input_b"), strict=True)
        joined = []
        for i, (x, y) in enumerate(pairs):
            if x.known != y.known:
                raise invalid(
                    "input_a and input_b TensorList element shapes are not identical at index "
                    f"{i}.  Saw {shapes.text(x.known)} vs. {shapes.text(y.known)}"
                )
            joined.append(x.having((*x.items, *y.items)))
        return _handles(joined, tuple(np.shape(a)))

    return run


def _typed(handles: Any, dtype: DType, name: str) -> list[TensorList]:
    found = [list_of(handle, None) for handle in np.asarray(handles, object).reshape(-1)]
    for i, items in enumerate(found):
        if items.dtype not in (None, dtype):
            saw = "none" if items.dtype is None else items.dtype.name
            raise invalid(f"{name}[{i}].dtype != element_dtype.  Saw: {saw} vs. {dtype.name}")
    return found
