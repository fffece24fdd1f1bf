"""Values made of several tensors: `IndexedSlices` and `SparseTensor`."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

from opdock import dtypes, shapes
from opdock.dtypes import DType
from opdock.graph.nodes.constant_value import known_shape
from opdock.graph.nodes.convert import convert_to_tensor, register_tensor_conversion_function
from opdock.graph.nodes.operation import Operation, Tensor, graph_behind
from opdock.graph.nodes.operation import is_tensor as is_dense
from opdock.graph.nodes.registry import get
from opdock.graph.nodes.scopes import name_scope
from opdock.shapes import Shape, TensorShape


class CompositeTensor:
    """Base of what stands for a tensor and is made of several: programs ask with `isinstance`.

    A subclass has a `_type_spec`, which says what the value is made of.
    """

    _is_composite = True

    @property
    def _type_spec(self) -> Any:
        raise NotImplementedError(f"{type(self).__name__}._type_spec()")

    def _composite_key(self) -> str:
        return type(self).__name__

    def _composite_parts(self) -> Any:
        """What the value is made of: a structure of tensors."""
        return self._type_spec._to_components(self)

    def _from_parts(self, parts: Any) -> Any:
        """A value like this one, of other parts."""
        return self._type_spec._from_components(parts)

    def consumers(self) -> list[Operation]:
        """The operations that read what the value is made of."""
        parts = [part for part in self._composite_parts() if part is not None]
        return list(dict.fromkeys(op for part in parts for op in part.consumers()))


class IndexedSlicesValue(NamedTuple):
    """The fetched value of an `IndexedSlices`."""

    values: Any
    indices: Any
    dense_shape: Any


class SparseTensorValue(NamedTuple):
    """The fetched value of a `SparseTensor`, also accepted as a feed."""

    indices: Any
    values: Any
    dense_shape: Any

    @property
    def _type_spec(self) -> Any:
        # Specs make values, and values say their specs.
        from opdock.graph.nodes.compositespec import SparseTensorSpec

        return SparseTensorSpec.from_value(self)


class IndexedSlices(CompositeTensor):
    """Rows of a larger tensor: `dense[indices[i]]` has the contribution `values[i]`.

    The gradient of a gather; repeated indices add up.
    """

    _is_tensor_like = True

    def __init__(self, values: Tensor, indices: Tensor, dense_shape: Tensor | None = None) -> None:
        self._values = values
        self._indices = indices
        self._dense_shape = dense_shape

    @property
    def values(self) -> Tensor:
        """The slices, stacked along the first axis."""
        return self._values

    @property
    def indices(self) -> Tensor:
        """1-D indices of the slices in the dense tensor."""
        return self._indices

    @property
    def dense_shape(self) -> Tensor | None:
        """The shape of the dense tensor, if known."""
        return self._dense_shape

    @property
    def shape(self) -> TensorShape:
        """The static shape of the dense tensor."""
        # Programs give a list too: nothing is converted before it is used.
        if isinstance(self._dense_shape, Tensor):
            return TensorShape(known_shape(self._dense_shape))
        return TensorShape(self._dense_shape)

    @property
    def name(self) -> str:
        """The name of the values."""
        return self._values.name

    @property
    def device(self) -> str:
        """The requested device of the values."""
        return self._values.device

    @property
    def op(self) -> Operation:
        """The op that produces the values."""
        return self._values.op

    @property
    def dtype(self) -> DType:
        """The element type."""
        return self._values.dtype

    @property
    def graph(self) -> Any:
        """The graph of the values."""
        return graph_behind(self._values)

    @property
    def _type_spec(self) -> Any:
        from opdock.graph.nodes.compositespec import spec_of_slices

        return spec_of_slices(self)

    def _loop_shapes(self, values: TensorShape | None = None) -> list[Shape]:
        """The shapes that the tensors keep in a loop: by default there may be other slices.

        Args:
            values: the shape that the values keep.
        """
        if values is None:
            return [s.shape.raw for s in self._type_spec._component_specs]
        shape = values.raw
        kept: list[Shape] = [shape, None if shape is None else shape[:1]]
        return kept if self._dense_shape is None else [*kept, shape and (len(shape),)]

    def __neg__(self) -> IndexedSlices:
        return IndexedSlices(-self._values, self._indices, self._dense_shape)

    def __repr__(self) -> str:
        shape = "" if self._dense_shape is None else f", dense_shape={self._dense_shape}"
        return f"IndexedSlices(indices={self._indices}, values={self._values}{shape})"


def _densify(
    value: IndexedSlices, dtype: Any = None, name: str | None = None, as_ref: bool = False
) -> Tensor:
    if dtype is not None and not dtypes.as_dtype(dtype).is_compatible_with(value.dtype):
        raise ValueError(
            f"Tensor conversion requested dtype {dtypes.as_dtype(dtype).name} for IndexedSlices "
            f"with dtype {value.dtype.name}"
        )
    if value.dense_shape is None:
        raise ValueError(f"Tensor conversion requires dense_shape for IndexedSlices: {value}")
    if shapes.num_elements(value.shape.raw) is None:
        warnings.warn(
            "Converting sparse IndexedSlices to a dense Tensor of unknown shape. This may consume "
            "a large amount of memory.",
            stacklevel=3,
        )
    rows = get("StridedSlice")(value.dense_shape, [0], [1], [1], shrink_axis_mask=1)
    dense: Tensor = get("UnsortedSegmentSum")(value.values, value.indices, rows, name=name)
    return dense


class SparseTensor(CompositeTensor):
    """A tensor given by its non-empty cells: `indices` [N, rank], `values` [N], `dense_shape`."""

    _is_tensor_like = False

    def __init__(self, indices: Any, values: Any, dense_shape: Any) -> None:
        with name_scope(None, "SparseTensor", [indices, values, dense_shape]):
            self._indices = convert_to_tensor(indices, dtypes.int64, "indices")
            self._values = convert_to_tensor(values, name="values")
            self._dense_shape = convert_to_tensor(dense_shape, dtypes.int64, "dense_shape")
        index_shape = shapes.with_rank(self._indices.raw_shape, 2)
        value_shape = shapes.with_rank(self._values.raw_shape, 1)
        dims = shapes.with_rank(self._dense_shape.raw_shape, 1)
        shapes.Dimension(index_shape[0]).assert_is_compatible_with(value_shape[0])
        shapes.Dimension(index_shape[1]).assert_is_compatible_with(dims[0])
        self._promised: Shape = None

    def _promise(self, shape: Shape) -> None:
        """Makes known of the static dense shape what its tensor does not tell."""
        self._promised = shapes.merge(self._promised, shape)

    @classmethod
    def from_value(cls, sparse_tensor_value: Any) -> SparseTensor:
        """A SparseTensor from a `SparseTensorValue` or a SparseTensor."""
        value = sparse_tensor_value
        if isinstance(value, SparseTensor):
            return value
        if not isinstance(value, SparseTensorValue):
            raise TypeError(f"Neither a SparseTensor nor SparseTensorValue: {value!r}.")
        return cls(value.indices, value.values, value.dense_shape)

    @property
    def indices(self) -> Tensor:
        """int64 [N, rank]: the coordinates of the non-empty cells."""
        return self._indices

    @property
    def values(self) -> Tensor:
        """[N]: the values of the non-empty cells."""
        return self._values

    @property
    def dense_shape(self) -> Tensor:
        """int64 [rank]: the shape of the dense tensor."""
        return self._dense_shape

    @property
    def shape(self) -> TensorShape:
        """The static dense shape."""
        return TensorShape(shapes.merge(known_shape(self._dense_shape), self._promised))

    def get_shape(self) -> TensorShape:
        """The static dense shape."""
        return self.shape

    @property
    def op(self) -> Operation:
        """The op that produces the values."""
        return self._values.op

    @property
    def dtype(self) -> DType:
        """The type of the values."""
        return self._values.dtype

    @property
    def graph(self) -> Any:
        """The graph of the parts."""
        return graph_behind(self._indices)

    @property
    def _type_spec(self) -> Any:
        from opdock.graph.nodes.compositespec import SparseTensorSpec

        return SparseTensorSpec.from_value(self)

    def _loop_shapes(self, dense_shape: TensorShape | None = None) -> list[Shape]:
        """The shapes that the tensors keep in a loop: there may always be other elements.

        Args:
            dense_shape: the shape that the dense shape keeps, which is a vector.
        """
        kept = self._dense_shape.shape if dense_shape is None else dense_shape
        if kept.ndims not in (None, 1):
            raise ValueError(f"Expected a shape with 1 dimension, got {kept}")
        rank = None if kept.raw is None else kept.raw[0]
        return [(None, rank), (None,), (rank,)]

    def eval(self, feed_dict: Any = None, session: Any = None) -> SparseTensorValue:
        """Evaluates the parts in `session` or the default session."""
        from opdock.graph.nodes.default_session import default_session_for

        session = default_session_for(
            self.graph, session, "eval", "Cannot evaluate tensor using `eval()`"
        )
        parts = session.run([self._indices, self._values, self._dense_shape], feed_dict)
        return SparseTensorValue(*parts)

    def __repr__(self) -> str:
        return (
            f"SparseTensor(indices={self._indices}, values={self._values}, "
            f"dense_shape={self._dense_shape})"
        )


def internal_convert_to_tensor_or_indexed_slices(
    value: Any, dtype: Any = None, name: str | None = None
) -> Any:
    """`value` itself when it is IndexedSlices (or sparse), else as a Tensor of type `dtype`."""
    if isinstance(value, (IndexedSlices, SparseTensor)):
        if dtype is not None and not dtypes.as_dtype(dtype).is_compatible_with(value.dtype):
            raise ValueError(
                f"Tensor conversion requested dtype {dtypes.as_dtype(dtype).name} for {value!r}"
            )
        return value
    return convert_to_tensor(value, dtype, name)


convert_to_tensor_or_indexed_slices = internal_convert_to_tensor_or_indexed_slices


def convert_to_tensor_or_sparse_tensor(
    value: Any, dtype: Any = None, name: str | None = None
) -> Any:
    """`value` as a SparseTensor if it is one, or the value of one, else as a Tensor.

    Args:
        value: a SparseTensor, a SparseTensorValue, or what `tf.convert_to_tensor` takes.
        dtype: the element type that must come out.
        name: the name of a node that has to be made.

    Raises:
        RuntimeError: the SparseTensor has another type.
    """
    if isinstance(value, SparseTensorValue):
        value = SparseTensor.from_value(value)
    if isinstance(value, SparseTensor):
        if dtype is not None and not dtypes.as_dtype(dtype).is_compatible_with(value.dtype):
            raise RuntimeError(
                f"Sparse dtype: requested = {dtypes.as_dtype(dtype).name}, actual = "
                f"{value.dtype.name}"
            )
        return value
    return convert_to_tensor(value, dtype, name)


def is_sparse(x: Any) -> bool:
    """Whether `x` is a SparseTensor or the value of one."""
    return isinstance(x, (SparseTensor, SparseTensorValue))


register_tensor_conversion_function(IndexedSlices, _densify)


def is_tensor(x: Any) -> bool:
    """Whether `x` is a tensor or stands for one: a variable, slices, a sparse tensor.

    Args:
        x: anything.
    """
    return is_dense(x) or isinstance(x, SparseTensor)
