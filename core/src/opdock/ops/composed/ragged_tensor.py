"""`tf.RaggedTensor`: rows of different lengths, as values one after the other and their splits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from opdock import dtypes
from opdock.dtypes import DType
from opdock.graph.nodes.composite import CompositeTensor
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.scopes import name_scope
from opdock.ops.arithmetic import maximum
from opdock.ops.array import shape as shape_of
from opdock.ops.cast import cast
from opdock.ops.composed.ragged_factories import SPLIT_TYPES, RaggedFactories
from opdock.ops.composed.ragged_value import RaggedTensorValue
from opdock.ops.fill import ones
from opdock.ops.gather import gather
from opdock.ops.joining import concat, stack
from opdock.ops.ragged import from_variant_op, to_variant_op
from opdock.ops.reduce import reduce_max
from opdock.ops.support.ragged_rows import positive_axis, splits_to_ids
from opdock.shapes import Shape, TensorShape

__all__: list[str] = []


class RaggedTensor(RaggedFactories, CompositeTensor):
    """A tensor with one or more dimensions whose slices differ in length.

    Row `i` is `values[row_splits[i]:row_splits[i + 1]]`; the values of a tensor with several ragged
    dimensions are a RaggedTensor themselves. Made by the `from_...` methods.
    """

    def __init__(
        self,
        values: Any,
        row_splits: Any,
        cached_row_lengths: Tensor | None = None,
        cached_value_rowids: Tensor | None = None,
        cached_nrows: Tensor | None = None,
        internal: bool = False,
    ) -> None:
        if not internal:
            raise ValueError(
                "RaggedTensor constructor is private; please use one of the factory methods "
                "instead (e.g., RaggedTensor.from_row_lengths())"
            )
        if not isinstance(row_splits, Tensor):
            raise TypeError(f"Row-partitioning argument must be a Tensor, got {row_splits!r}")
        if not isinstance(values, (RaggedTensor, Tensor)):
            raise TypeError(f"values must be a Tensor or RaggedTensor, got {values!r}")
        if row_splits.dtype not in SPLIT_TYPES:
            raise ValueError("Row-partitioning argument must be int32 or int64")
        for cached in (cached_row_lengths, cached_value_rowids, cached_nrows):
            if not (cached is None or isinstance(cached, Tensor)):
                raise TypeError("Cached value must be a Tensor or None.")
        row_splits.shape.assert_has_rank(1)
        values.shape.with_rank_at_least(1)
        row_splits.set_shape([None])
        self._values = values
        self._row_splits = row_splits
        self._cached_row_lengths = cached_row_lengths
        self._cached_value_rowids = cached_value_rowids
        self._cached_nrows = cached_nrows

    # ------------------------------------------------------------ what it is made of
    values: Any = property(lambda self: self._values, doc="The rows one after the other.")
    row_splits: Any = property(lambda self: self._row_splits, doc="Where rows begin and end.")
    dtype: Any = property(lambda self: self._values.dtype, doc="The type of the values.")
    graph: Any = property(lambda self: self._row_splits._op.graph, doc="The graph of the parts.")
    op: Any = property(lambda self: self.flat_values.op, doc="What makes the flat values.")

    @property
    def shape(self) -> TensorShape:
        """The static shape; ragged dimensions are unknown."""
        splits = self._row_splits.raw_shape
        rows = None if splits is None or splits[0] is None else splits[0] - 1
        inner = self._values.shape[1:]
        return TensorShape([rows, None]).concatenate(inner)

    def get_shape(self) -> TensorShape:
        """The static shape; ragged dimensions are unknown."""
        return self.shape

    @property
    def ragged_rank(self) -> int:
        """The number of ragged dimensions."""
        return len(self.nested_row_splits)

    @property
    def flat_values(self) -> Tensor:
        """The values of the innermost ragged dimension."""
        values = self._values
        found: Tensor = values.flat_values if isinstance(values, RaggedTensor) else values
        return found

    @property
    def nested_row_splits(self) -> tuple[Tensor, ...]:
        """The row splits of all ragged dimensions, outermost first."""
        values = self._values
        inner = values.nested_row_splits if isinstance(values, RaggedTensor) else ()
        return (self._row_splits, *inner)

    def value_rowids(self, name: str | None = None) -> Tensor:
        """The row of each value."""
        if self._cached_value_rowids is not None:
            return self._cached_value_rowids
        with name_scope(name, "RaggedValueRowIds", [self._row_splits]):
            return splits_to_ids(self._row_splits)

    def nested_value_rowids(self, name: str | None = None) -> tuple[Tensor, ...]:
        """The rows of all ragged dimensions, outermost first."""
        with name_scope(name, "RaggedNestedValueRowIds", [self._row_splits]):
            return tuple(level.value_rowids() for level in _levels(self))

    def nrows(self, out_type: Any = None, name: str | None = None) -> Tensor:
        """The number of rows, in the type of the splits by default."""
        wanted = self._row_splits.dtype if out_type is None else dtypes.as_dtype(out_type)
        if self._cached_nrows is not None:
            return cast(self._cached_nrows, wanted)  # type: ignore[no-any-return]
        with name_scope(name, "RaggedNRows", [self._row_splits]):
            return shape_of(self._row_splits, out_type=wanted)[0] - 1

    def row_starts(self, name: str | None = None) -> Tensor:
        """Where each row begins."""
        with name_scope(name, "RaggedRowStarts", [self._row_splits]):
            return self._row_splits[:-1]

    def row_limits(self, name: str | None = None) -> Tensor:
        """Where each row ends."""
        with name_scope(name, "RaggedRowLimits", [self._row_splits]):
            return self._row_splits[1:]

    def row_lengths(self, axis: int = 1, name: str | None = None) -> Any:
        """The length of each row, or of the slices along another dimension."""
        if axis == 1 and self._cached_row_lengths is not None:
            return self._cached_row_lengths
        with name_scope(name, "RaggedRowLengths", [self._row_splits]):
            axis = positive_axis(axis, self.shape.ndims)
            if axis == 0:
                return self.nrows()
            if axis == 1:
                return self._row_splits[1:] - self._row_splits[:-1]
            if isinstance(self._values, RaggedTensor):
                return self.with_values(self._values.row_lengths(axis - 1))
            sizes = shape_of(self._values, out_type=self._row_splits.dtype)
            each = ones(sizes[: axis - 1], self._row_splits.dtype) * sizes[axis - 1]
            return self.with_values(each)

    def nested_row_lengths(self, name: str | None = None) -> tuple[Tensor, ...]:
        """The row lengths of all ragged dimensions, outermost first."""
        with name_scope(name, "RaggedNestedRowLengths", [self._row_splits]):
            return tuple(level.row_lengths() for level in _levels(self))

    def bounding_shape(
        self, axis: Any = None, name: str | None = None, out_type: Any = None
    ) -> Tensor:
        """The shape of the smallest dense tensor that has room for all slices.

        Args:
            axis: the dimensions that are asked for; all by default.
            name: a prefix for the names of the operations.
            out_type: the type of the result, that of the splits by default.
        """
        wanted = self._row_splits.dtype if out_type is None else dtypes.as_dtype(out_type)
        with name_scope(name, "RaggedBoundingBox", [self._row_splits]):
            levels = list(_levels(self))
            zero = convert_to_tensor(0, self._row_splits.dtype)
            longest = [maximum(reduce_max(level._own_lengths()), zero) for level in levels]
            if isinstance(axis, int) and axis == 0:
                return self.nrows(wanted)
            if isinstance(axis, int) and axis == 1:
                return cast(longest[0], wanted)  # type: ignore[no-any-return]
            ragged = stack([self.nrows(wanted), *[cast(n, wanted) for n in longest]])
            box = concat([ragged, shape_of(self.flat_values, out_type=wanted)[1:]], 0)
            return box if axis is None else gather(box, axis)

    def _own_lengths(self) -> Tensor:
        return self._row_splits[1:] - self._row_splits[:-1]

    # ------------------------------------------------------------ with other parts
    def with_values(self, new_values: Any) -> RaggedTensor:
        """The same rows of other values, as many as there were."""
        new_values.shape.with_rank_at_least(1)
        self._values.shape[:1].assert_is_compatible_with(new_values.shape[:1])
        if isinstance(new_values, RaggedTensor):
            _check_split_types(
                self._row_splits.dtype, new_values._row_splits.dtype, "self and new_values have"
            )
        return RaggedTensor(
            new_values, self._row_splits, self._cached_row_lengths, self._cached_value_rowids,
            self._cached_nrows, internal=True,
        )  # fmt: skip

    def with_flat_values(self, new_values: Any) -> RaggedTensor:
        """The same rows of other flat values."""
        if isinstance(self._values, RaggedTensor):
            return self.with_values(self._values.with_flat_values(new_values))
        return self.with_values(new_values)

    def with_row_splits_dtype(self, dtype: Any) -> RaggedTensor:
        """The same tensor with splits of type `tf.int32` or `tf.int64`."""
        wanted = dtypes.as_dtype(dtype)
        if wanted not in SPLIT_TYPES:
            raise ValueError("dtype must be int32 or int64")
        if self._row_splits.dtype == wanted:
            return self
        values = self._values
        if isinstance(values, RaggedTensor):
            values = values.with_row_splits_dtype(wanted)
        lengths, ids, count = [
            None if tensor is None else cast(tensor, wanted)
            for tensor in (self._cached_row_lengths, self._cached_value_rowids, self._cached_nrows)
        ]
        splits = cast(self._row_splits, wanted)
        return RaggedTensor(values, splits, lengths, ids, count, internal=True)

    # ------------------------------------------------------------ other forms
    # `ragged_dispatch` gives what is made of functions that know this class.
    from_tensor: ClassVar[Any]
    from_sparse: ClassVar[Any]
    to_tensor: Any
    to_sparse: Any
    __getitem__: Any

    def to_list(self) -> list[Any]:
        """The rows as nested lists, where operations run as they are made.

        Raises:
            ValueError: the tensor is of a graph: fetch it and ask its value.
        """
        if self._has_value():
            return self._at_once().to_list()
        raise ValueError(
            "RaggedTensor.to_list() is only supported in eager mode; in graph mode, evaluate the "
            "RaggedTensor first and then use RaggedTensorValue.to_list()."
        )

    def _has_value(self) -> bool:
        """Whether the parts were computed as they were made, and so have their values."""
        return all(hasattr(part, "numpy") for part in self._composite_parts())

    def _at_once(self) -> RaggedTensorValue:
        values: Any = self.values
        splits: Any = self.row_splits
        inner = values._at_once() if isinstance(values, RaggedTensor) else values.numpy()
        return RaggedTensorValue(inner, splits.numpy())

    def eval(self, feed_dict: Any = None, session: Any = None) -> RaggedTensorValue:
        """Evaluates the parts in `session` or the default session."""
        from opdock.graph.nodes.default_session import default_session_for

        session = default_session_for(
            self.graph, session, "eval", "Cannot evaluate tensor using `eval()`"
        )
        found: RaggedTensorValue = session.run(self, feed_dict)
        return found

    def __repr__(self) -> str:
        if self._has_value():
            return f"<tf.RaggedTensor {self.to_list()}>"
        return f"tf.RaggedTensor(values={self._values}, row_splits={self._row_splits})"

    def __bool__(self) -> bool:
        raise TypeError("RaggedTensor may not be used as a boolean.")

    # ------------------------------------------------------------ as parts
    def _composite_parts(self) -> list[Tensor]:
        return [self.flat_values, *self.nested_row_splits]

    def _loop_shapes(self, shape: TensorShape | None = None) -> list[Shape]:
        """The shapes that the tensors keep in a loop: by default the number of rows stays.

        Args:
            shape: the shape that the ragged tensor keeps.
        """
        kept = (self.shape if shape is None else shape).raw
        flat: Shape = None if kept is None else (None, *kept[self.ragged_rank + 1 :])
        rows = kept[0] if kept else None
        inner: list[Shape] = [(None,)] * (self.ragged_rank - 1)
        return [flat, (None if rows is None else rows + 1,), *inner]

    def _from_parts(self, parts: Sequence[Any]) -> RaggedTensor:
        found = parts[0]
        for splits in reversed(parts[1:]):
            found = RaggedTensor(found, splits, internal=True)
        return found  # type: ignore[no-any-return]

    def _composite_value(self, parts: Sequence[Any]) -> RaggedTensorValue:
        """What is fetched, of the values of the parts."""
        found = parts[0]
        for splits in reversed(parts[1:]):
            found = RaggedTensorValue(found, splits)
        return found  # type: ignore[no-any-return]

    def _to_variant(self, batched_input: bool = False, name: str | None = None) -> Tensor:
        """The whole in a scalar variant, or each row in one of a vector of them."""
        with name_scope(name, "RaggedToVariant", [self._row_splits]):
            found: Tensor = to_variant_op(
                list(self.nested_row_splits), self.flat_values, batched_input=batched_input
            )
            return found

    @classmethod
    def _from_variant(
        cls, variant: Any, dtype: Any, output_ragged_rank: int,
        input_ragged_rank: int | None = None, name: str | None = None,
    ) -> RaggedTensor:  # fmt: skip
        """What `_to_variant` put into variants, whose own dimensions become ragged ones.

        Raises:
            ValueError: the ragged ranks and that of `variant` do not fit together.
        """
        variant = convert_to_tensor(variant, dtypes.variant, "variant")
        rank = variant.shape.ndims
        if None not in (rank, input_ragged_rank) and (
            output_ragged_rank != input_ragged_rank + rank
        ):
            raise ValueError(
                "output_ragged_rank must be equal to input_ragged_rank + variant.shape.ndims, "
                f"found variant.shape.ndims: {rank}, input_ragged_rank: {input_ragged_rank}, "
                f"output_ragged_rank: {output_ragged_rank}"
            )
        with name_scope(name, "RaggedFromVariant", [variant]):
            splits, values = from_variant_op(
                variant, input_ragged_rank=-1 if input_ragged_rank is None else input_ragged_rank,
                output_ragged_rank=output_ragged_rank, Tvalues=dtypes.as_dtype(dtype),
                Tsplits=dtypes.int64,
            )  # fmt: skip
            found: RaggedTensor = cls.from_nested_row_splits(values, splits, validate=False)
            return found

    def _composite_feed(self, value: Any) -> list[tuple[Tensor, Any]]:
        """What the parts are fed, of a value."""
        if not isinstance(value, RaggedTensorValue) or value.ragged_rank != self.ragged_rank:
            raise TypeError(
                "A RaggedTensor is fed a RaggedTensorValue with as many ragged dimensions: "
                f"{self.ragged_rank}, got {value!r}"
            )
        given = [value.flat_values, *value.nested_row_splits]
        return list(zip(self._composite_parts(), given, strict=True))

    def _as_graph_element(self) -> Tensor:
        return self.flat_values


# ---------------------------------------------------------------- arguments
def _levels(value: Any) -> Any:
    while isinstance(value, RaggedTensor):
        yield value
        value = value.values


def is_ragged(value: Any) -> bool:
    """Whether `value` is a ragged tensor or the value of one."""
    return isinstance(value, (RaggedTensor, RaggedTensorValue))


def convert_to_tensor_or_ragged_tensor(
    value: Any, dtype: Any = None, preferred_dtype: Any = None, name: str | None = None
) -> Any:
    """`value` as a RaggedTensor if it is one, or the value of one, else as a Tensor.

    Raises:
        ValueError: the RaggedTensor has another type than `dtype`.
    """
    if isinstance(value, RaggedTensor):
        if dtype is not None and not dtypes.as_dtype(dtype).is_compatible_with(value.dtype):
            raise ValueError(
                f"Tensor conversion requested dtype {dtypes.as_dtype(dtype).name} for RaggedTensor "
                f"with dtype {value.dtype.name}: {value!r}"
            )
        return value
    if isinstance(value, RaggedTensorValue):
        with name_scope(name, "ConvertToTensorOrRaggedTensor"):
            flat = convert_to_tensor(
                value.flat_values, dtype, "flat_values", preferred_dtype=preferred_dtype
            )
            splits = value.nested_row_splits
            return RaggedTensor.from_nested_row_splits(flat, splits, validate=False)
    return convert_to_tensor(value, dtype, name, preferred_dtype=preferred_dtype)


def match_row_splits_dtypes(*tensors: Any) -> DType:
    """The type of the splits of all ragged tensors among some values; int64 if there is none.

    Raises:
        ValueError: they differ.
    """
    found = {t.row_splits.dtype for t in tensors if isinstance(t, RaggedTensor)}
    if len(found) > 1:
        _check_split_types(dtypes.int32, dtypes.int64, "Input RaggedTensors have")
    return found.pop() if found else dtypes.int64


def _check_split_types(a: DType, b: DType, who: str) -> None:
    if a != b:
        raise ValueError(
            f"{who} mismatched row_splits dtypes; use RaggedTensor.with_row_splits_dtype() to "
            "convert them to compatible dtypes."
        )
