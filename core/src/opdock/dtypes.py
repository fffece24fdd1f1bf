"""Tensor element types: TF's names and enum values, NumPy's representations."""

from __future__ import annotations

import builtins
import importlib
from typing import Any, Final, Self

import ml_dtypes
import numpy as np

_REF_OFFSET: Final = 100
_BFLOAT16_LIMITS: Final[Any] = ml_dtypes.finfo(ml_dtypes.bfloat16)  # type: ignore[no-untyped-call]


class DType:
    """The type of a tensor's elements; compare with `==` or `is`.

    A `*_ref` type belongs to the output of a variable op: the tensor may change between reads.
    """

    __slots__ = (
        "_enum",
        "_is_handle",
        "_is_ref_dtype",
        "_is_state",
        "_limits",
        "_name",
        "_other",
        "_size",
        "as_numpy_dtype",
        "base_dtype",
        "is_bool",
        "is_complex",
        "is_floating",
        "is_integer",
        "is_quantized",
        "is_unsigned",
        "np",
    )

    def __new__(cls, type_enum: Any, *made: Any) -> Self:
        """The type of a number of TF's `DataType`, as programs ask for it; `made` is for this file.

        Raises:
            TypeError: there is none of this number.
        """
        found: Any = object.__new__(cls) if made else as_dtype(type_enum)
        return found  # type: ignore[no-any-return]

    def __init__(self, name: Any, *made: Any) -> None:
        if made:
            self._define(name, *made)

    def _define(self, name: str, enum: int, numpy_type: Any, kind: str) -> None:
        self._name = name
        self._enum = enum
        self.as_numpy_dtype: Any = numpy_type
        self.np: np.dtype[Any] = np.dtype(numpy_type)
        self.is_floating = kind == "f"
        self.is_integer = kind in "iu"
        self.is_unsigned = kind == "u"
        self.is_complex = kind == "c"
        self.is_bool = kind == "b"
        self.is_quantized = kind == "q"
        # What every pass of the compiler asks of every value is an attribute.
        self._is_ref_dtype = False
        self._is_handle = name in ("resource", "variant")
        self._is_state = name == "resource"
        self._size = 1 if self.np == np.dtype(object) else self.np.itemsize
        self.base_dtype: DType = self  # this type without `_ref`
        self._other: DType = self

    def _make_ref(self) -> DType:
        ref = object.__new__(DType)
        for slot in DType.__slots__:
            if hasattr(self, slot):
                setattr(ref, slot, getattr(self, slot))
        ref._name = self._name + "_ref"
        ref._enum = self._enum + _REF_OFFSET
        ref._is_ref_dtype = ref._is_state = True
        ref._other = self
        self._other = ref
        return ref

    @property
    def name(self) -> str:
        """TF's name: "float32", "float32_ref", "string"."""
        return self._name

    @property
    def as_datatype_enum(self) -> int:
        """The value in TF's DataType protobuf enum."""
        return self._enum

    @property
    def _is_data(self) -> builtins.bool:
        """Whether values can be kept outside of a step: they are no reference and no handle."""
        return not (self._is_ref_dtype or self._is_handle)

    @property
    def as_ref(self) -> DType:
        """The reference flavour of this type."""
        return self if self._is_ref_dtype else self._other

    _as_ref = as_ref

    @property
    def real_dtype(self) -> DType:
        """The type of the real part of a complex type; any other type unchanged."""
        return {complex64: float32, complex128: float64}.get(self.base_dtype, self)

    @property
    def is_numpy_compatible(self) -> builtins.bool:
        """Whether NumPy arrays can hold such elements."""
        return self.base_dtype not in (resource, variant)

    @property
    def size(self) -> int:
        """Bytes per element (1 for strings and handles, as in TF)."""
        return self._size

    @property
    def limits(self) -> tuple[Any, Any]:
        """(min, max) as used for image conversion: (0, max) for integers, (0, 1) for floats."""
        return (0, 1) if self.is_floating else (0, self.max)

    @property
    def min(self) -> Any:
        """The smallest representable value; TypeError for types without an order or a range."""
        return self._limit("min")

    @property
    def max(self) -> Any:
        """The largest representable value; TypeError for types without an order or a range."""
        return self._limit("max")

    def _limit(self, which: str) -> Any:
        if self.is_integer:
            return getattr(np.iinfo(self.np), which)
        if self.base_dtype is bfloat16:
            return float(getattr(_BFLOAT16_LIMITS, which))
        if self.is_floating:
            return getattr(np.finfo(self.np), which)
        raise TypeError(f"Cannot find {which}imum value of {self}.")

    def is_compatible_with(self, other: Any) -> builtins.bool:
        """Whether a tensor of type `other` may be used where this type is wanted."""
        other = as_dtype(other)
        return self is other or self is other.base_dtype

    def __eq__(self, other: object) -> builtins.bool:
        if self is other:
            return True
        if other is None or isinstance(other, DType):
            return False
        if isinstance(other, builtins.int):
            return self._enum == other
        try:
            return self is as_dtype(other)
        except TypeError:
            return False

    def __ne__(self, other: object) -> builtins.bool:
        return not self.__eq__(other)

    def __hash__(self) -> builtins.int:
        # It equals its number, so it is found where libraries keep tables by numbers.
        return self._enum

    def __repr__(self) -> str:
        return f"tf.{self._name}"

    def __str__(self) -> str:
        return f"<dtype: '{self._name}'>"

    def __int__(self) -> int:
        return self._enum

    def __reduce__(self) -> tuple[Any, ...]:
        return as_dtype, (self._name,)


def _quantized(field: str, storage: Any) -> np.dtype[Any]:
    return np.dtype([(field, storage)])


float32 = DType("float32", 1, np.float32, "f")
float64 = DType("float64", 2, np.float64, "f")
int32 = DType("int32", 3, np.int32, "i")
uint8 = DType("uint8", 4, np.uint8, "u")
int16 = DType("int16", 5, np.int16, "i")
int8 = DType("int8", 6, np.int8, "i")
string = DType("string", 7, np.object_, "s")
complex64 = DType("complex64", 8, np.complex64, "c")
int64 = DType("int64", 9, np.int64, "i")
bool_ = DType("bool", 10, np.bool_, "b")
qint8 = DType("qint8", 11, _quantized("qint8", np.int8), "q")
quint8 = DType("quint8", 12, _quantized("quint8", np.uint8), "q")
qint32 = DType("qint32", 13, _quantized("qint32", np.int32), "q")
bfloat16 = DType("bfloat16", 14, ml_dtypes.bfloat16, "f")
qint16 = DType("qint16", 15, _quantized("qint16", np.int16), "q")
quint16 = DType("quint16", 16, _quantized("quint16", np.uint16), "q")
uint16 = DType("uint16", 17, np.uint16, "u")
complex128 = DType("complex128", 18, np.complex128, "c")
float16 = DType("float16", 19, np.float16, "f")
resource = DType("resource", 20, np.object_, "r")
variant = DType("variant", 21, np.object_, "v")
uint32 = DType("uint32", 22, np.uint32, "u")
uint64 = DType("uint64", 23, np.uint64, "u")
half = float16
double = float64

_BASE: Final = (
    float32,
    float64,
    int32,
    uint8,
    int16,
    int8,
    string,
    complex64,
    int64,
    bool_,
    qint8,
    quint8,
    qint32,
    bfloat16,
    qint16,
    quint16,
    uint16,
    complex128,
    float16,
    resource,
    variant,
    uint32,
    uint64,
)
_REFS: Final = tuple(t._make_ref() for t in _BASE)

FLOATS: Final = frozenset({float16, bfloat16, float32, float64})
SIGNED: Final = frozenset({int8, int16, int32, int64})
UNSIGNED: Final = frozenset({uint8, uint16, uint32, uint64})
INTS: Final = SIGNED | UNSIGNED
COMPLEX: Final = frozenset({complex64, complex128})
REALS: Final = FLOATS | INTS
NUMBERS: Final = REALS | COMPLEX
QUANTIZED: Final = frozenset({qint8, quint8, qint16, quint16, qint32})
QUANTIZED_DTYPES: Final = QUANTIZED
ALL: Final = frozenset(_BASE)

# TF's OpDef spellings (also NodeDef text format without DT_).
PROTO_NAMES: Final[dict[str, DType]] = {
    "float": float32,
    "double": float64,
    "half": float16,
    "bool": bool_,
    **{t.name: t for t in _BASE},
}
_PROTO_SPELLING: Final = {float32: "float", float64: "double", float16: "half"}


def proto_name(dtype: DType) -> str:
    """TF's OpDef spelling: "float" for float32, "half" for float16, else the name."""
    base = dtype.base_dtype
    return _PROTO_SPELLING.get(base, base.name) + ("_ref" if dtype._is_ref_dtype else "")


_LOOKUP: dict[Any, DType] = {}
for _t in _BASE + _REFS:
    _LOOKUP[_t] = _t
    _LOOKUP[_t._enum] = _t
    _LOOKUP[_t._name] = _t
for _t in _BASE:
    _LOOKUP[_t.np] = _t
    if isinstance(_t.as_numpy_dtype, type):
        _LOOKUP[_t.as_numpy_dtype] = _t
for _name, _t in PROTO_NAMES.items():
    _LOOKUP[_name] = _t
    _LOOKUP[_name + "_ref"] = _t.as_ref
_LOOKUP.update(
    {
        float: float32,
        bool: bool_,
        int: int64,
        complex: complex128,
        object: string,
        str: string,
        bytes: string,
        np.dtype(object): string,
        np.object_: string,
    }
)


def __getattr__(name: str) -> Any:
    # `tf.dtypes` has casts too, which stand above this module: found by name, when asked for.
    if name in ("cast", "saturate_cast"):
        return getattr(importlib.import_module("opdock.ops.cast"), name)
    if name == "complex":
        return importlib.import_module("opdock.ops.complex").complex
    if name == "as_string":
        return getattr(importlib.import_module("opdock.api.strings"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def as_dtype(type_value: Any) -> DType:
    """Converts a DType, NumPy type, TF name, enum value or Python type to a `DType`.

    Raises:
        TypeError: `type_value` names no tensor type.
    """
    if type_value.__class__ is DType:
        return type_value
    try:
        found = _LOOKUP.get(type_value)
    except TypeError:
        found = None
    if found is not None and type(type_value) is not builtins.bool:
        return found
    numpy_type: np.dtype[Any] | None
    try:
        numpy_type = np.dtype(type_value)
    except TypeError:
        numpy_type = None
    if numpy_type is not None and type_value is not None:
        if numpy_type.kind in "SU":
            return string
        # Platform aliases (np.intc, np.longlong) are distinct objects of a known width.
        found = _LOOKUP.get(numpy_type) or _LOOKUP.get(numpy_type.newbyteorder("="))
        if found is None and numpy_type.kind in "iu":
            found = _LOOKUP.get(
                f"{'u' if numpy_type.kind == 'u' else ''}int{8 * numpy_type.itemsize}"
            )
        if found is not None:
            return found
    if hasattr(type_value, "dtype") and isinstance(type_value.dtype, DType):
        return type_value.dtype
    raise TypeError(f"Cannot convert value {type_value!r} to a TensorFlow DType.")


# The public name shadows the builtin, so it is bound last.
bool = bool_
