"""Static shapes: raw tuples inside opdock, `TensorShape` and `Dimension` for users.

A raw `Shape` is a tuple whose unknown dimensions are None, or None when the rank is unknown.
Errors carry TF's wording without the op; the op registry knows the op and appends it.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, TypeAlias

from opdock.dtypes import DType

Shape: TypeAlias = tuple[int | None, ...] | None


# ---------------------------------------------------------------- raw shapes
def text(shape: Shape) -> str:
    """TF's rendering: "[2,?]", "<unknown>"."""
    if shape is None:
        return "<unknown>"
    return "[" + ",".join("?" if d is None else str(d) for d in shape) + "]"


def is_fully_defined(shape: Shape) -> bool:
    """Whether the rank and every dimension are known."""
    return shape is not None and None not in shape


def num_elements(shape: Shape) -> int | None:
    """The number of elements, or None when it is not known."""
    if shape is None or None in shape:
        return None
    return math.prod(shape)  # type: ignore[arg-type]  # none of them is None


def with_rank(shape: Shape, rank: int) -> tuple[int | None, ...]:
    """`shape` with unknown rank resolved to `rank`; ValueError when the rank differs."""
    if shape is None:
        return (None,) * rank
    if len(shape) != rank:
        raise ValueError(f"Shape must be rank {rank} but is rank {len(shape)}")
    return shape


def with_rank_at_least(shape: Shape, rank: int) -> Shape:
    """`shape`; ValueError when its rank is known and below `rank`."""
    if shape is not None and len(shape) < rank:
        raise ValueError(f"Shape must be at least rank {rank} but is rank {len(shape)}")
    return shape


def with_rank_at_most(shape: Shape, rank: int) -> Shape:
    """`shape`; ValueError when its rank is known and above `rank`."""
    if shape is not None and len(shape) > rank:
        raise ValueError(f"Shape must be at most rank {rank} but is rank {len(shape)}")
    return shape


def merge_dim(a: int | None, b: int | None) -> int | None:
    """The dimension that both agree on."""
    if a is None:
        return b
    if b is None or a == b:
        return a
    raise ValueError(f"Dimensions must be equal, but are {a} and {b}")


def merge(a: Shape, b: Shape) -> Shape:
    """The most specific shape compatible with both."""
    if a is None or a == b:
        return b
    if b is None:
        return a
    if len(a) != len(b):
        raise ValueError(f"Shapes must be equal rank, but are {len(a)} and {len(b)}")
    for i, (x, y) in enumerate(zip(a, b, strict=True)):
        if x is not None and y is not None and x != y:
            raise ValueError(
                f"Dimension {i} in both shapes must be equal, but are {x} and {y}. "
                f"Shapes are {text(a)} and {text(b)}."
            )
    return tuple(y if x is None else x for x, y in zip(a, b, strict=True))


def is_compatible(a: Shape, b: Shape) -> bool:
    """Whether some concrete shape fits both."""
    if a is None or b is None or a == b:
        return True
    return len(a) == len(b) and all(
        x is None or y is None or x == y for x, y in zip(a, b, strict=True)
    )


def broadcast(a: Shape, b: Shape) -> Shape:
    """NumPy's broadcast of two shapes, with unknown dimensions."""
    if a == b:
        return a if a is None or None not in a else tuple(a)
    if a is None or b is None:
        return None
    if not a:
        return b
    if not b:
        return a
    if len(a) < len(b):
        a, b = b, a
    out: list[int | None] = list(a[: len(a) - len(b)])
    for x, y in zip(a[len(out) :], b, strict=True):
        if x == y:
            out.append(x)
        elif x == 1:
            out.append(y)
        elif y == 1:
            out.append(x)
        elif x is None or y is None:
            # An unknown side must be 1 or match, so a known side above 1 decides.
            out.append(y if x is None else x)
        else:
            raise ValueError(f"Dimensions must be equal, but are {x} and {y}")
    return tuple(out)


def concat(a: Shape, b: Shape) -> Shape:
    """The dimensions of `a` followed by those of `b`."""
    return None if a is None or b is None else a + b


def as_shape(value: Any) -> Shape:
    """Converts anything TF accepts as a shape to a raw shape.

    Raises:
        TypeError: an entry is neither an integer, a Dimension nor None.
        ValueError: a dimension is negative (other than -1 in a protobuf).
    """
    if value is None:
        return None
    if type(value) is tuple and all(d is None or (type(d) is int and d >= 0) for d in value):
        return value
    if isinstance(value, TensorShape):
        return value.raw
    if isinstance(value, Dimension):
        return (value.value,)
    if hasattr(value, "unknown_rank") and hasattr(value, "dim"):
        if value.unknown_rank:
            return None
        return tuple(None if d.size == -1 else int(d.size) for d in value.dim)
    if isinstance(value, (str, bytes)):
        raise TypeError(f"A shape cannot be made from the string {value!r}.")
    try:
        entries = list(value)
    except TypeError:
        entries = [value]
    return tuple(_as_dim(d) for d in entries)


def _as_dim(value: Any) -> int | None:
    if value is None:
        return None
    if isinstance(value, Dimension):
        return value.value
    if hasattr(value, "graph") and hasattr(value, "op"):
        raise TypeError(
            f"Dimension value must be integer or None or have an __index__ method, got the "
            f"tensor {value!r}; use a tensor-valued shape argument instead."
        )
    if isinstance(value, float) and not value.is_integer():
        raise ValueError(f"Ambiguous dimension: {value}")
    if isinstance(value, DType):
        raise TypeError(f"Cannot convert {value} to Dimension")
    try:
        dim = int(value)
    except (TypeError, ValueError):
        raise TypeError(
            f"Dimension value must be integer or None or have an __index__ method, got {value!r}"
        ) from None
    if dim < 0:
        raise ValueError(f"Dimension {dim} must be >= 0")
    return dim


# ---------------------------------------------------------------- public wrappers
def _arithmetic(fn: Callable[[int, int], int]) -> Callable[[Dimension, Any], Any]:
    """An operator of `Dimension` that keeps unknown unknown."""

    def method(self: Dimension, other: Any) -> Any:
        try:
            other = as_dimension(other)
        except (TypeError, ValueError):
            return NotImplemented
        if self.value is None or other.value is None:
            return Dimension(None)
        return Dimension(fn(self.value, other.value))

    return method


def _comparison(fn: Callable[[int, int], bool]) -> Callable[[Dimension, Any], Any]:
    """A comparison of `Dimension`s; None when one is unknown."""

    def method(self: Dimension, other: Any) -> Any:
        other = as_dimension(other)
        if self.value is None or other.value is None:
            return None
        return fn(self.value, other.value)

    return method


class Dimension:
    """One dimension of a `TensorShape`: an integer or unknown. Arithmetic keeps unknown unknown."""

    __slots__ = ("_value",)

    def __init__(self, value: Any) -> None:
        self._value = _as_dim(value)

    @property
    def value(self) -> int | None:
        """The size, or None."""
        return self._value

    def is_compatible_with(self, other: Any) -> bool:
        """Whether both may be the same size."""
        other = as_dimension(other)
        return self._value is None or other._value is None or self._value == other._value

    def assert_is_compatible_with(self, other: Any) -> None:
        """Raises ValueError unless compatible with `other`."""
        if not self.is_compatible_with(other):
            raise ValueError(f"Dimensions {self} and {other} are not compatible")

    def merge_with(self, other: Any) -> Dimension:
        """The dimension that both agree on."""
        other = as_dimension(other)
        self.assert_is_compatible_with(other)
        return other if self._value is None else self

    __add__ = __radd__ = _arithmetic(operator.add)
    __sub__ = _arithmetic(operator.sub)
    __rsub__ = _arithmetic(lambda a, b: b - a)
    __mul__ = __rmul__ = _arithmetic(operator.mul)
    __floordiv__ = __div__ = _arithmetic(operator.floordiv)
    __rfloordiv__ = _arithmetic(lambda a, b: b // a)
    __mod__ = _arithmetic(operator.mod)
    __rmod__ = _arithmetic(lambda a, b: b % a)
    __lt__ = _comparison(operator.lt)
    __le__ = _comparison(operator.le)
    __gt__ = _comparison(operator.gt)
    __ge__ = _comparison(operator.ge)

    def __truediv__(self, other: Any) -> Any:
        raise TypeError(
            f"unsupported operand type(s) for /: 'Dimension' and '{type(other).__name__}', "
            "please use // instead"
        )

    def __rtruediv__(self, other: Any) -> Any:
        raise TypeError(
            f"unsupported operand type(s) for /: '{type(other).__name__}' and 'Dimension', "
            "please use // instead"
        )

    __rdiv__ = __rtruediv__

    def __eq__(self, other: object) -> Any:
        try:
            other = as_dimension(other)
        except (TypeError, ValueError):
            return NotImplemented
        if self._value is None or other._value is None:
            return None
        return self._value == other._value

    def __ne__(self, other: object) -> Any:
        equal = self.__eq__(other)
        return equal if equal is NotImplemented or equal is None else not equal

    def __hash__(self) -> int:
        return hash(self._value)

    def __int__(self) -> int:
        if self._value is None:
            raise TypeError("An unknown Dimension has no integer value.")
        return self._value

    __index__ = __int__

    def __reduce__(self) -> tuple[Any, ...]:
        return Dimension, (self._value,)

    def __str__(self) -> str:
        return "?" if self._value is None else str(self._value)

    def __repr__(self) -> str:
        return f"Dimension({self._value})"


def as_dimension(value: Any) -> Dimension:
    """`value` as a `Dimension`."""
    return value if isinstance(value, Dimension) else Dimension(value)


class TensorShape:
    """A possibly partial shape: unknown rank, or a rank with known and unknown dimensions.

    Its entries are `Dimension`s; after `tf.enable_v2_tensorshape` they are integers and None.
    """

    __slots__ = ("raw",)

    _v2_behavior: ClassVar[bool] = False

    def __init__(self, dims: Any) -> None:
        self.raw: Shape = as_shape(dims)

    @property
    def dims(self) -> list[Dimension] | None:
        """The dimensions, or None for unknown rank."""
        return None if self.raw is None else [Dimension(d) for d in self.raw]

    @property
    def ndims(self) -> int | None:
        """The rank, or None."""
        return None if self.raw is None else len(self.raw)

    rank = ndims
    _dims = dims  # libraries of those years read the protected name

    def as_list(self) -> list[int | None]:
        """The dimensions as integers and None; ValueError for unknown rank."""
        if self.raw is None:
            raise ValueError("as_list() is not defined on an unknown TensorShape.")
        return list(self.raw)

    def as_proto(self) -> Any:
        """The shape as a TensorShapeProto."""
        from opdock.io import protos

        if self.raw is None:
            return protos.TensorShapeProto(unknown_rank=True)
        dim = protos.TensorShapeProto.Dim
        return protos.TensorShapeProto(dim=[dim(size=-1 if d is None else d) for d in self.raw])

    def num_elements(self) -> int | None:
        """The number of elements, or None."""
        return num_elements(self.raw)

    def is_fully_defined(self) -> bool:
        """Whether every dimension is known."""
        return is_fully_defined(self.raw)

    def assert_is_fully_defined(self) -> None:
        """Raises ValueError unless every dimension is known."""
        if not self.is_fully_defined():
            raise ValueError(f"Shape {self} is not fully defined")

    def is_compatible_with(self, other: Any) -> bool:
        """Whether some concrete shape fits both."""
        return is_compatible(self.raw, as_shape(other))

    def assert_is_compatible_with(self, other: Any) -> None:
        """Raises ValueError unless compatible with `other`."""
        if not self.is_compatible_with(other):
            raise ValueError(f"Shapes {self} and {as_tensor_shape(other)} are incompatible")

    def assert_same_rank(self, other: Any) -> None:
        """Raises ValueError when both ranks are known and differ."""
        other = as_tensor_shape(other)
        if self.raw is not None and other.raw is not None and len(self.raw) != len(other.raw):
            raise ValueError(f"Shapes {self} and {other} must have the same rank")

    def assert_has_rank(self, rank: int) -> None:
        """Raises ValueError when the rank is known and is not `rank`."""
        if self.ndims not in (None, rank):
            raise ValueError(f"Shape {self} must have rank {rank}")

    def merge_with(self, other: Any) -> TensorShape:
        """The most specific shape compatible with both; ValueError when there is none."""
        other = as_tensor_shape(other)
        if not is_compatible(self.raw, other.raw):
            raise ValueError(f"Shapes {self} and {other} are not compatible")
        return TensorShape(merge(self.raw, other.raw))

    def concatenate(self, other: Any) -> TensorShape:
        """This shape's dimensions followed by the other's."""
        return TensorShape(concat(self.raw, as_shape(other)))

    def most_specific_compatible_shape(self, other: Any) -> TensorShape:
        """The shape that both fit: where they differ it is unknown."""
        b = as_shape(other)
        if self.raw is None or b is None or len(self.raw) != len(b):
            return TensorShape(None)
        return TensorShape([x if x == y else None for x, y in zip(self.raw, b, strict=True)])

    def with_rank(self, rank: int) -> TensorShape:
        """This shape with the given rank; ValueError when the rank differs."""
        try:
            return TensorShape(with_rank(self.raw, rank))
        except ValueError:
            raise ValueError(f"Shape {self} must have rank {rank}") from None

    def with_rank_at_least(self, rank: int) -> TensorShape:
        """This shape; ValueError when its rank is known and smaller."""
        if self.raw is not None and len(self.raw) < rank:
            raise ValueError(f"Shape {self} must have rank at least {rank}")
        return self

    def with_rank_at_most(self, rank: int) -> TensorShape:
        """This shape; ValueError when its rank is known and larger."""
        if self.raw is not None and len(self.raw) > rank:
            raise ValueError(f"Shape {self} must have rank at most {rank}")
        return self

    def __len__(self) -> int:
        if self.raw is None:
            raise ValueError("Cannot take the length of shape with unknown rank.")
        return len(self.raw)

    def __bool__(self) -> bool:
        return self.raw is not None

    def __iter__(self) -> Iterator[Any]:
        if self.raw is None:
            raise ValueError("Cannot iterate over a shape with unknown rank.")
        return iter(self.raw if self._v2_behavior else [Dimension(d) for d in self.raw])

    def __getitem__(self, key: Any) -> Any:
        if self.raw is not None:
            if isinstance(key, slice):
                return TensorShape(self.raw[key])
            return self.raw[key] if self._v2_behavior else Dimension(self.raw[key])
        if isinstance(key, slice):
            start, stop = key.start or 0, key.stop
            if key.step is not None or stop is None or start < 0 or stop < 0:
                return TensorShape(None)
            return TensorShape((None,) * max(stop - start, 0))
        return None if self._v2_behavior else Dimension(None)

    def __add__(self, other: Any) -> TensorShape:
        return self.concatenate(other)

    def __radd__(self, other: Any) -> TensorShape:
        return as_tensor_shape(other).concatenate(self)

    def __eq__(self, other: object) -> bool:
        try:
            raw = as_shape(other)
        except (TypeError, ValueError):
            return NotImplemented
        # Two unknown dimensions are equal only where they are one and the same.
        return raw is self.raw or (raw == self.raw and is_fully_defined(raw))

    def __ne__(self, other: object) -> bool:
        try:
            raw = as_shape(other)
        except (TypeError, ValueError):
            return NotImplemented
        if self.raw is None or raw is None:
            raise ValueError("The inequality of unknown TensorShapes is undefined.")
        return not self.__eq__(other)

    def __hash__(self) -> int:
        return hash(self.raw)

    def __str__(self) -> str:
        if self.raw is None:
            return "<unknown>"
        if len(self.raw) == 1:
            return f"({'?' if self.raw[0] is None else self.raw[0]},)"
        return "(" + ", ".join("?" if d is None else str(d) for d in self.raw) + ")"

    def __repr__(self) -> str:
        return f"TensorShape({self.raw if self.raw is None else list(self)})"

    def __reduce__(self) -> tuple[Any, ...]:
        return TensorShape, (self.dims,)


def as_tensor_shape(value: Any) -> TensorShape:
    """`value` as a `TensorShape`."""
    return value if isinstance(value, TensorShape) else TensorShape(value)


def dimension_value(dimension: Any) -> int | None:
    """The integer or None behind `dimension`, a `Dimension` or such a value itself."""
    return dimension.value if isinstance(dimension, Dimension) else dimension


def dimension_at_index(shape: TensorShape, index: int) -> Dimension:
    """Dimension `index` of a shape; unknown if the rank is (TF's `tf.dimension_at_index`)."""
    assert isinstance(shape, TensorShape)
    return Dimension(None) if shape.dims is None else shape.dims[index]
