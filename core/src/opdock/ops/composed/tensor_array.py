"""`tf.TensorArray`: an array of tensors for use in loops.

Where one storage cannot stand for all that an array may be, it is a value, the list of its
elements: an array that comes into a function from another step, or of which branches and turns make
new ones. Writing makes another list, and nothing of the one before changes.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, ClassVar, Self

from opdock import dtypes, shapes
from opdock.graph.nodes.constant_value import constant_value
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.nodes.scopes import colocate_with, executing_eagerly, name_scope
from opdock.ops import tensor_array as raw
from opdock.ops.registry import get
from opdock.shapes import Shape, TensorShape

__all__ = ["TensorArray"]


class Elements:
    """What is known of the elements, shared by all versions of an array."""

    def __init__(self, shape: Shape, known: bool, infer: bool) -> None:
        self.shape = shape
        self.known = known
        self.infer = infer

    def merge(self, shape: Shape) -> None:
        """Takes the shape of a new element into account."""
        if not shapes.is_compatible(self.shape, shape):
            raise ValueError(
                f"Inconsistent shapes: saw {TensorShape(shape)} but expected "
                f"{TensorShape(self.shape)} (and infer_shape={self.infer})"
            )
        if self.infer:
            self.shape, self.known = shapes.merge(self.shape, shape), True


class TensorArray:
    """An array of tensors of one type, written once and read one element at a time.

    Each writing method returns a new `TensorArray` on the same storage; go on with that one, as
    the old one does not know of the write. It may be a loop variable of `tf.while_loop`.

    Args:
        dtype: type of the elements.
        size: the number of elements, an int32 scalar.
        dynamic_size: whether writing beyond the end makes the array longer.
        clear_after_read: drop an element when it is read; True by default.
        tensor_array_name: a name for messages.
        handle: an existing array's handle in place of `size`.
        flow: the flow that goes with `handle`.
        infer_shape: require equal shapes of all elements, and use them as static shape.
        element_shape: the shape of the elements.
        colocate_with_first_write_call: accepted for TF's signature; the array lives where it is
            made and elements come to it.
        name: a name for the operations.

    Raises:
        ValueError: both or none of `handle` and `size` are given, or `handle` comes with an
            argument of new arrays.
        TypeError: `handle` is no tensor.
    """

    _handle: Any
    """None where the array is a list."""
    # What arrays are where operations run as they are made; `eager/graph.py` says what.
    _eager: ClassVar[type[Any]]

    def __new__(cls, *_: Any, **__: Any) -> Self:
        """Where operations run as they are made, an array is a list of tensors."""
        at_once = cls is TensorArray and executing_eagerly()
        made: Self = object.__new__(cls._eager if at_once else cls)
        return made

    def __init__(
        self,
        dtype: Any,
        size: Any = None,
        dynamic_size: bool | None = None,
        clear_after_read: bool | None = None,
        tensor_array_name: str | None = None,
        handle: Tensor | None = None,
        flow: Tensor | None = None,
        infer_shape: bool = True,
        element_shape: Any = None,
        colocate_with_first_write_call: bool = True,
        name: str | None = None,
    ) -> None:
        _check_arguments(handle, size, tensor_array_name, dynamic_size, clear_after_read)
        self._dtype = dtypes.as_dtype(dtype).base_dtype
        self._dynamic = dynamic_size or False
        self._first_write = colocate_with_first_write_call
        known = None if element_shape is None else shapes.as_shape(element_shape)
        self._elements = Elements(known, element_shape is not None, infer_shape)
        with name_scope(name, "TensorArray", [handle, size, flow]) as scope:
            if handle is not None:
                self._handle = handle
                self._flow = convert_to_tensor(0.0) if flow is None else flow
                return
            self._handle, self._flow = raw.tensor_array_op(
                convert_to_tensor(size, dtypes.int32, "size"), dtype=self._dtype,
                element_shape=known,
                identical_element_shapes=self._elements.infer, dynamic_size=self._dynamic,
                clear_after_read=True if clear_after_read is None else clear_after_read,
                tensor_array_name=tensor_array_name or "", name=scope,
            )  # fmt: skip

    # ------------------------------------------------------------ facts
    @property
    def dtype(self) -> dtypes.DType:
        """The type of the elements."""
        return self._dtype

    @property
    def handle(self) -> Any:
        """The handle of the storage; None where the array is a list."""
        return self._handle

    @property
    def flow(self) -> Tensor:
        """The scalar that orders the operations on the array."""
        return self._flow

    @property
    def graph(self) -> Any:
        """The graph of the flow."""
        return self._flow._op.graph

    @property
    def dynamic_size(self) -> bool:
        """Whether the array may grow."""
        return self._dynamic

    @property
    def element_shape(self) -> TensorShape:
        """The static shape of the elements, as far as it is known."""
        return TensorShape(self._elements.shape if self._elements.known else None)

    # ------------------------------------------------------------ as a loop variable
    _is_composite = True

    def _composite_key(self) -> str:
        return TensorArray.__name__

    def _composite_parts(self) -> list[Tensor]:
        return [self._flow]

    def _from_parts(self, parts: list[Tensor]) -> TensorArray:
        return self._with_flow(parts[0])

    def _as_list(self, other: TensorArray) -> TensorArray:
        """The array as a value, where another one may stand in its place."""
        shape = self.element_shape.most_specific_compatible_shape(other.element_shape).raw
        infer = self._elements.infer and other._elements.infer
        elements = Elements(shape, shape is not None, infer)
        return ListArray(list_of_array(self), self._dtype, elements, self._dynamic)

    def _with_flow(self, flow: Tensor) -> TensorArray:
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other._flow = flow
        return other

    @contextlib.contextmanager
    def _scope(self, name: str | None, default: str, *values: Any) -> Iterator[str]:
        with (
            name_scope(name, default, [self._handle, *values]) as scope,
            colocate_with(self._handle),
        ):
            yield scope

    # ------------------------------------------------------------ methods
    def identity(self) -> TensorArray:
        """The same array, after the operations so far and the control dependencies in force."""
        return self._with_flow(get("Identity")(self._flow))

    def grad(self, source: str, flow: Tensor | None = None, name: str | None = None) -> TensorArray:
        """The array of gradients that the computation called `source` collects."""
        flow = self._flow if flow is None else flow
        with self._scope(name, "TensorArrayGrad"):
            handle, out = raw.tensor_array_grad_op(self._handle, flow, source=source)
        shape = self._elements.shape if self._elements.known else None
        return TensorArray(
            self._dtype,
            handle=handle,
            flow=out,
            infer_shape=self._elements.infer,
            element_shape=shape,
        )

    def read(self, index: Any, name: str | None = None) -> Tensor:
        """The element at `index`, an int32 scalar."""
        with self._scope(name, "TensorArrayRead", index):
            value = self._read(index)
        if self._elements.known:
            value.set_shape(self._elements.shape)
        return value

    def write(self, index: Any, value: Any, name: str | None = None) -> TensorArray:
        """Stores `value` at `index`.

        Raises:
            ValueError: the static shape of `value` does not fit the other elements'.
        """
        with self._scope(name, "TensorArrayWrite", index, value):
            value = convert_to_tensor(value, preferred_dtype=self._dtype, name="value")
            self._elements.merge(value.raw_shape)
            return self._with_flow(self._write(index, value))

    def stack(self, name: str | None = None) -> Tensor:
        """All elements, stacked along a new first axis. They must have one shape."""
        with self._scope(name, "TensorArrayStack"):
            return self.gather(get("Range")(0, self.size(), 1))

    def gather(self, indices: Any, name: str | None = None) -> Tensor:
        """The elements at `indices` (int32 vector), stacked."""
        with self._scope(name, "TensorArrayGather", indices):
            return self._gather(indices, self.element_shape.raw)

    def concat(self, name: str | None = None) -> Tensor:
        """All elements joined along their first axis; only that may differ."""
        known = self.element_shape.raw
        with self._scope(name, "TensorArrayConcat"):
            return self._concat(None if known is None else known[1:])

    def unstack(self, value: Any, name: str | None = None) -> TensorArray:
        """Stores the rows of `value`, one per element."""
        with self._scope(name, "TensorArrayUnstack", value):
            value = convert_to_tensor(value, self._dtype, name="value")
            return self.scatter(get("Range")(0, _rows(value), 1), value)

    def scatter(self, indices: Any, value: Any, name: str | None = None) -> TensorArray:
        """Stores row i of `value` at `indices[i]`."""
        with self._scope(name, "TensorArrayScatter", indices, value):
            value = self._rows_of(value)
            return self._with_flow(self._scatter(indices, value))

    def _rows_of(self, value: Any) -> Tensor:
        """Elements as one tensor."""
        rows: Tensor = convert_to_tensor(value, preferred_dtype=self._dtype, name="value")
        if rows.raw_shape is not None:
            self._elements.merge(rows.raw_shape[1:])
        return rows

    def split(self, value: Any, lengths: Any, name: str | None = None) -> TensorArray:
        """Stores consecutive parts of `value` of the given lengths (int64 vector)."""
        with self._scope(name, "TensorArraySplit", value, lengths):
            value = convert_to_tensor(value, self._dtype, name="value")
            lengths = get("Cast")(convert_to_tensor(lengths), DstT=dtypes.int64)
            self._merge_parts(value.raw_shape, constant_value(lengths))
            return self._with_flow(self._split(value, lengths))

    def _merge_parts(self, whole: Shape, lengths: Any) -> None:
        """What is known of the parts of a tensor: its own shape, if all are as long."""
        if whole and lengths is not None and lengths.size and lengths.min() == lengths.max():
            self._elements.merge((int(lengths.flat[0]), *whole[1:]))

    def size(self, name: str | None = None) -> Tensor:
        """The number of elements."""
        with colocate_with(self._handle):
            found: Tensor = raw.tensor_array_size_op(self._handle, self._flow, name=name)
        return found

    def mark_used(self) -> None:
        """Says that it is left unused on purpose; nothing warns of that here."""

    def close(self, name: str | None = None) -> Operation | None:
        """An operation that drops the elements."""
        with colocate_with(self._handle):
            done: Operation = raw.tensor_array_close_op(self._handle, name=name)
        return done

    # ------------------------------------------------------------ operations
    def _read(self, index: Any) -> Tensor:
        value: Tensor = raw.tensor_array_read_op(self._handle, index, self._flow, dtype=self._dtype)
        return value

    def _gather(self, indices: Any, shape: Shape) -> Tensor:
        values: Tensor = raw.tensor_array_gather_op(
            self._handle, indices, self._flow, dtype=self._dtype, element_shape=shape
        )
        return values

    def _concat(self, rest: Shape) -> Tensor:
        """All elements, whose shapes end with `rest`."""
        whole: tuple[Tensor, Tensor] = raw.tensor_array_concat_op(
            self._handle, self._flow, dtype=self._dtype, element_shape_except0=rest
        )
        return whole[0]

    def _write(self, index: Any, value: Tensor) -> Tensor:
        """The flow after an element was stored; likewise for those below."""
        flow: Tensor = raw.tensor_array_write_op(self._handle, index, value, self._flow)
        return flow

    def _scatter(self, indices: Any, value: Tensor) -> Tensor:
        flow: Tensor = raw.tensor_array_scatter_op(self._handle, indices, value, self._flow)
        return flow

    def _split(self, value: Tensor, lengths: Tensor) -> Tensor:
        flow: Tensor = raw.tensor_array_split_op(self._handle, value, lengths, self._flow)
        return flow


class ListArray(TensorArray):
    """An array whose flow is a list.

    Args:
        items: the list, a variant.
        dtype: the type of the elements.
        elements: what is known of them.
        dynamic: whether the array may grow.
    """

    def __init__(
        self, items: Tensor, dtype: dtypes.DType, elements: Elements, dynamic: bool
    ) -> None:
        self._dtype, self._elements, self._dynamic = dtype, elements, dynamic
        self._first_write = True
        self._handle = None
        self._flow = items

    def grad(self, source: str, flow: Tensor | None = None, name: str | None = None) -> TensorArray:
        """Not to be had of a list.

        Raises:
            NotImplementedError: always, as in TensorFlow.
        """
        raise NotImplementedError(
            "A TensorArray that is a list has no array of gradients: tf.gradients goes through it."
        )

    def stack(self, name: str | None = None) -> Tensor:
        """All elements, stacked along a new first axis. They must have one shape."""
        with self._scope(name, "TensorArrayStack"):
            return _list_op("stack", self._flow, self._dtype, element_shape=self.element_shape)

    def unstack(self, value: Any, name: str | None = None) -> TensorArray:
        """An array of the rows of `value`."""
        with self._scope(name, "TensorArrayUnstack", value):
            value = self._rows_of(value)
            return self._with_flow(_list_op("from_tensor", value, value.shape[1:]))

    def size(self, name: str | None = None) -> Tensor:
        """The number of elements."""
        found: Tensor = get("TensorListLength")(self._flow, name=name)
        return found

    def close(self, name: str | None = None) -> Operation:
        """An operation that does nothing: a list is over when nobody has it."""
        done: Operation = get("NoOp")(name=name)
        return done

    @contextlib.contextmanager
    def _scope(self, name: str | None, default: str, *values: Any) -> Iterator[str]:
        with name_scope(name, default, [self._flow, *values]) as scope:
            yield scope

    def _read(self, index: Any) -> Tensor:
        return _list_op("get_item", self._flow, index, self._dtype, self.element_shape)

    def _gather(self, indices: Any, shape: Shape) -> Tensor:
        return _list_op("gather", self._flow, indices, self._dtype, shape)

    def _concat(self, rest: Shape) -> Tensor:
        shape = None if rest is None else (None, *rest)
        return _list_op("concat", self._flow, self._dtype, shape)

    def _write(self, index: Any, value: Tensor) -> Tensor:
        return _list_op("set_item", self._flow, index, value, self._dynamic)

    def _scatter(self, indices: Any, value: Tensor) -> Tensor:
        return _list_op("scatter", value, indices, input_handle=self._flow)

    def _split(self, value: Tensor, lengths: Tensor) -> Tensor:
        return _list_op("split", value, self.element_shape, lengths)


def list_of_array(array: TensorArray) -> Tensor:
    """The elements of an array as a list."""
    if array.flow.dtype is dtypes.variant:
        return array.flow
    with name_scope("convert_tensor_array"):
        if not executing_eagerly() and array.flow.op.type == "TensorArrayV3":
            # Nothing is written, so nobody needs to know of which shape the elements are.
            size, shape = array.flow.op.inputs[0], array.element_shape
            return _list_op("reserve", shape, size, array.dtype)
        return _list_op("from_tensor", array.stack(), array.element_shape)


def _list_op(name: str, *args: Any, **kwargs: Any) -> Tensor:
    """A function on lists, which are for the few programs that need them."""
    from opdock.ops.composed import tensor_lists

    found: Tensor = getattr(tensor_lists, f"tensor_list_{name}")(*args, **kwargs)
    return found


def _rows(value: Tensor) -> Any:
    known = value.raw_shape
    if known and known[0] is not None:
        return known[0]
    return get("StridedSlice")(get("Shape")(value), [0], [1], [1], shrink_axis_mask=1)


def _check_arguments(handle: Any, size: Any, array_name: Any, dynamic: Any, clear: Any) -> None:
    if handle is not None and array_name:
        raise ValueError("Cannot construct with both handle and tensor_array_name")
    if handle is not None and not isinstance(handle, Tensor):
        raise TypeError("Handle must be a Tensor")
    if handle is None and size is None:
        raise ValueError("Size must be provided if handle is not provided")
    for what, value in (("a size", size), ("dynamic_size", dynamic), ("clear_after_read", clear)):
        if handle is not None and value is not None:
            raise ValueError(f"Cannot provide both a handle and {what} at the same time")
