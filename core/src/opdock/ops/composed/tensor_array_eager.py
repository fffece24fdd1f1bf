"""`tf.TensorArray` where operations run as they are made: a list of tensors.

No program orders what is done with such an array: it is changed where it stands, its elements may
be written again, and what differentiates it is the tape that watches them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from opdock import dtypes
from opdock.errors import InvalidArgumentError, OutOfRangeError
from opdock.graph.nodes.constant_value import constant_value
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.operation import Tensor
from opdock.ops.composed.tensor_array import Elements, TensorArray
from opdock.ops.fill import zeros
from opdock.ops.joining import concat, stack
from opdock.ops.splitting import split, unstack
from opdock.shapes import as_shape, is_compatible

__all__ = ["EagerTensorArray"]


class EagerTensorArray(TensorArray):
    """A `tf.TensorArray` whose methods run at once; see there for the arguments.

    Raises:
        ValueError: `handle` is given, which such an array does not have, or `size` is not.
    """

    def __init__(
        self, dtype: Any, size: Any = None, dynamic_size: bool | None = None,
        clear_after_read: bool | None = None, tensor_array_name: str | None = None,
        handle: Any = None, flow: Any = None, infer_shape: bool = True, element_shape: Any = None,
        colocate_with_first_write_call: bool = True, name: str | None = None,
    ) -> None:  # fmt: skip
        if handle is not None:
            raise ValueError(
                "TensorArray handles are not supported when eager execution is enabled."
            )
        if size is None:
            raise ValueError(
                "Size must be declared for TensorArrays when eager execution is enabled."
            )
        self._dtype = dtypes.as_dtype(dtype).base_dtype
        self._dynamic = dynamic_size or False
        self._clear = clear_after_read is not False
        known = None if element_shape is None else as_shape(element_shape)
        self._elements = Elements(known, element_shape is not None, infer_shape)
        self._handle = None
        # What goes through all arrays as one gets a tensor for each.
        self._flow = convert_to_tensor(0)
        self._values: list[Tensor | None] = [None] * int(size)
        self._taken: set[int] = set()

    def _from_parts(self, parts: list[Tensor]) -> TensorArray:
        return self

    def identity(self) -> TensorArray:
        """The array itself."""
        return self

    def grad(self, source: str, flow: Tensor | None = None, name: str | None = None) -> NoReturn:
        """Raises NotImplementedError: `tf.GradientTape` differentiates by the elements."""
        raise NotImplementedError(
            "TensorArray.grad is not supported when executing eagerly; a tf.GradientTape "
            "differentiates what is done with the elements without it."
        )

    # ------------------------------------------------------------ single elements
    def read(self, index: Any, name: str | None = None) -> Tensor:
        """The element at `index`.

        Raises:
            OutOfRangeError: there is no such element.
            InvalidArgumentError: it was cleared when it was read before.
        """
        place = int(index)
        if place < 0:
            raise OutOfRangeError(
                None, None, f"Reading from negative indices (index {place}) is not allowed."
            )
        if place >= len(self._values):
            raise OutOfRangeError(
                None, None,
                f"Tried to read from index {place} but array size is: {len(self._values)}",
            )  # fmt: skip
        if self._values[place] is None and place in self._taken:
            raise InvalidArgumentError(
                None, None,
                f"Could not read index {place} twice because it was cleared after a previous read "
                "(perhaps try setting clear_after_read = false?)",
            )  # fmt: skip
        value = self._at(place)
        if self._clear:
            self._values[place] = None
            self._taken.add(place)
        return value

    def write(self, index: Any, value: Any, name: str | None = None) -> TensorArray:
        """Puts `value` at `index`, in the place of what was there, and gives the array itself.

        Raises:
            OutOfRangeError: there is no such place, and the array does not grow.
            InvalidArgumentError: the value is of another type.
            ValueError: its shape does not fit the other elements'.
        """
        self._put(int(index), convert_to_tensor(value, preferred_dtype=self._dtype))
        return self

    def _put(self, place: int, value: Tensor) -> None:
        size = len(self._values)
        if place < 0:
            raise OutOfRangeError(
                None, None, f"Writing to negative indices (index {place}) is not allowed."
            )
        if place >= size and not self._dynamic:
            raise OutOfRangeError(
                None, None,
                f"Tried to write to index {place} but array is not resizeable and size is: {size}",
            )  # fmt: skip
        self._check_type(value)
        if not is_compatible(self._elements.shape, value.raw_shape):
            raise ValueError(
                f"Incompatible shape for value ({value.shape}), expected ({self.element_shape})"
            )
        self._elements.merge(value.raw_shape)
        self._values += [None] * (place + 1 - size)
        self._values[place] = value

    def _check_type(self, value: Tensor) -> None:
        if value.dtype.base_dtype is not self._dtype:
            raise InvalidArgumentError(
                None, None,
                f"TensorArray dtype is {self._dtype.name} but Op is trying to write dtype "
                f"{value.dtype.base_dtype.name}",
            )  # fmt: skip

    def _at(self, place: int) -> Tensor:
        """An element, zeros where nothing is."""
        value = self._values[place]
        if value is None:
            if not self.element_shape.is_fully_defined():
                raise ValueError(
                    f"Cannot read index {place}, which was not written: the shape of the elements, "
                    f"{self.element_shape}, does not say which zeros stand for it."
                )
            value = self._values[place] = zeros(self.element_shape, self._dtype)
        return value

    # ------------------------------------------------------------ all elements
    def stack(self, name: str | None = None) -> Tensor:
        """All elements, stacked along a new first axis. They must have one shape."""
        return self._stacked(range(len(self._values)), name)

    def gather(self, indices: Any, name: str | None = None) -> Tensor:
        """The elements at `indices`, stacked."""
        return self._stacked(_integers(indices), name)

    def _stacked(self, places: Sequence[int], name: str | None) -> Tensor:
        if not places:
            known = self.element_shape.as_list() if self.element_shape.is_fully_defined() else []
            return zeros([0, *known], self._dtype)
        return stack([self._at(place) for place in places], name=name or "stack")

    def concat(self, name: str | None = None) -> Tensor:
        """All elements joined along their first axis; only that may differ.

        Raises:
            InvalidArgumentError: an element is a scalar.
        """
        values = [self._at(place) for place in range(len(self._values))]
        for place, value in enumerate(values):
            if value.raw_shape == ():
                raise InvalidArgumentError(
                    None, None,
                    f"Concat saw a scalar shape at index {place} but requires at least vectors.",
                )  # fmt: skip
        return concat(values, 0, name=name or "concat")

    def unstack(self, value: Any, name: str | None = None) -> TensorArray:
        """Has the rows of `value` as its elements from now on.

        Raises:
            ValueError: there are more of them than elements, and the array does not grow.
        """
        rows = unstack(
            convert_to_tensor(value, preferred_dtype=self._dtype), name=name or "unstack"
        )
        size = len(self._values)
        if len(rows) > size and not self._dynamic:
            raise ValueError(
                f"Cannot unstack {len(rows)} tensors into a TensorArray of static size {size}"
            )
        self._values = list(rows)
        return self

    def scatter(self, indices: Any, value: Any, name: str | None = None) -> TensorArray:
        """Puts row i of `value` at `indices[i]`; see `write`."""
        rows = unstack(convert_to_tensor(value, preferred_dtype=self._dtype))
        for place, row in zip(_integers(indices), rows, strict=False):
            self._put(place, row)
        return self

    def split(self, value: Any, lengths: Any, name: str | None = None) -> TensorArray:
        """Has consecutive parts of `value` of the given lengths as its elements from now on.

        Raises:
            InvalidArgumentError: the lengths are no vector, are not as many as the elements, or do
                not add up to the rows of `value`.
        """
        value = convert_to_tensor(value, preferred_dtype=self._dtype)
        self._check_type(value)
        lengths = convert_to_tensor(lengths)
        parts, size = lengths.shape.as_list(), len(self._values)
        wrong = None
        if len(parts) != 1:
            wrong = f"Expected lengths to be a vector, received shape: {parts}"
        elif value.raw_shape == ():
            wrong = "Expected value to be at least a vector, but received shape: []"
        elif sum(_integers(lengths)) != value.shape.as_list()[0]:
            wrong = (
                "Expected sum of lengths to be equal to values.shape[0], but sum of lengths is "
                f"{sum(_integers(lengths))} and value's shape is: {value.shape.as_list()}"
            )
        elif parts[0] != size and not self._dynamic:
            wrong = (
                f"TensorArray's size is not equal to the size of lengths ({size} vs. {parts[0]}), "
                "and the TensorArray is not marked as dynamically resizeable"
            )
        if wrong is not None:
            raise InvalidArgumentError(None, None, wrong)
        self._values = list(split(value, lengths, name=name or "split"))
        return self

    def size(self, name: str | None = None) -> Tensor:
        """The number of elements."""
        return convert_to_tensor(len(self._values))

    def close(self, name: str | None = None) -> None:
        """Drops the elements."""
        self._values.clear()


def _integers(values: Any) -> list[int]:
    known = constant_value(convert_to_tensor(values))
    if known is None:
        raise TypeError(
            "A TensorArray of operations that run as they are made cannot be asked for elements "
            f"that only a graph knows: {values}"
        )
    return [int(v) for v in known]
