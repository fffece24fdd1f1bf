"""The library onnx, models in files, and tensors in models."""

from __future__ import annotations

import importlib
import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from opdock import dtypes, errors
from opdock.dtypes import DType
from opdock.io.files import read_file, write_file
from opdock.values import holds

__all__ = [
    "DTYPES", "OPSET", "NoRuleError", "array_of", "code_of", "dtype_of", "library", "missing",
    "read_model", "write_model",
]  # fmt: skip

Array = npt.NDArray[Any]

OPSET: Final = 17
"""The version of ONNX's ops that is written, and the newest whose meanings are read as such."""
_OLDEST: Final = 7
"""The oldest version that is read: before it, ops broadcast in another way."""
IR_VERSION: Final = 8

DTYPES: Final[Mapping[int, DType]] = {
    1: dtypes.float32, 2: dtypes.uint8, 3: dtypes.int8, 4: dtypes.uint16, 5: dtypes.int16,
    6: dtypes.int32, 7: dtypes.int64, 8: dtypes.string, 9: dtypes.bool, 10: dtypes.float16,
    11: dtypes.float64, 12: dtypes.uint32, 13: dtypes.uint64, 14: dtypes.complex64,
    15: dtypes.complex128, 16: dtypes.bfloat16,
}  # fmt: skip
"""Element types by ONNX's number."""
_CODES: Final = {dtype: code for code, dtype in DTYPES.items()}
_HELD: Final = {
    1: ("float_data", 1), 2: ("int32_data", 1), 3: ("int32_data", 1), 4: ("int32_data", 1),
    5: ("int32_data", 1), 6: ("int32_data", 1), 7: ("int64_data", 1), 9: ("int32_data", 1),
    10: ("int32_data", 1), 11: ("double_data", 1), 12: ("uint64_data", 1), 13: ("uint64_data", 1),
    16: ("int32_data", 1),
}  # fmt: skip
"""The field that holds elements which are not raw bytes."""


class NoRuleError(Exception):
    """A rule declines a node; the text says why."""


def library() -> Any:
    """The library.

    Raises:
        UnimplementedError: it is not installed.
    """
    try:
        return importlib.import_module("onnx")
    except ImportError as e:
        raise errors.UnimplementedError(
            None, None, f"An ONNX model needs the library onnx (pip install opdock-core[onnx]): {e}"
        ) from None


def missing(what: str, nodes: Sequence[tuple[str, str, str]]) -> errors.UnimplementedError:
    """The error that tells all nodes that cannot be translated.

    Args:
        what: into what.
        nodes: (op type, name, reason) of each.
    """
    by_op: dict[tuple[str, str], list[str]] = {}
    for op, name, why in nodes:
        by_op.setdefault((op, why), []).append(name)
    lines = [
        f"  {op} ({len(names)}): {why}; {', '.join(names[:3])}{', ...' * (len(names) > 3)}"
        for (op, why), names in sorted(by_op.items())
    ]
    return errors.UnimplementedError(
        None, None, f"{len(nodes)} nodes cannot be translated into {what}:\n" + "\n".join(lines)
    )


# ---------------------------------------------------------------- types and tensors
def code_of(dtype: DType) -> int:
    """ONNX's number of a type.

    Raises:
        NoRuleError: it has none.
    """
    try:
        return _CODES[dtype.base_dtype]
    except KeyError:
        raise NoRuleError(f"ONNX has no type {dtype.name}") from None


def dtype_of(code: int) -> DType:
    """The type of a number.

    Raises:
        NoRuleError: there is no such type here.
    """
    try:
        return DTYPES[code]
    except KeyError:
        raise NoRuleError(f"there is no type for ONNX's element type {code}") from None


def array_of(tensor: Any) -> Array:
    """The array in a TensorProto; what it says of its size is checked before anything is made.

    Raises:
        InvalidArgumentError: elements are missing, or lie in another file.
        NoRuleError: its type is unknown.
    """
    shape, dtype = tuple(tensor.dims), dtype_of(tensor.data_type)
    told = f"tensor '{tensor.name}' of shape {list(shape)}"
    if tensor.data_location or tensor.external_data:
        raise _invalid(f"{told} lies in another file, which is not read")
    if any(n < 0 for n in shape):
        raise _invalid(f"{told} has a negative dimension")
    if not holds(shape):
        raise _invalid(f"{told} has too many dimensions or elements")
    count = math.prod(shape)
    if dtype is dtypes.string:
        _check(told, len(tensor.string_data), count)
        return np.array(list(tensor.string_data), object).reshape(shape)
    kind = np.dtype(dtype.np)
    if tensor.HasField("raw_data"):
        _check(told, len(tensor.raw_data), count * kind.itemsize, "bytes")
        return np.frombuffer(tensor.raw_data, kind.newbyteorder("<")).astype(kind).reshape(shape)
    if tensor.data_type not in _HELD:
        raise NoRuleError(f"constants of type {dtype.name} are read as raw bytes only")
    held = getattr(tensor, _HELD[tensor.data_type][0])
    _check(told, len(held), count)
    if dtype in (dtypes.float16, dtypes.bfloat16):
        return np.array(held, np.uint16).view(kind).reshape(shape)
    return np.array(held).astype(kind).reshape(shape)


def _check(told: str, found: int, expected: int, what: str = "elements") -> None:
    if found != expected:
        raise _invalid(f"{told} has {found} {what}, expected {expected}")


def _invalid(message: str) -> errors.InvalidArgumentError:
    return errors.InvalidArgumentError(None, None, f"ONNX model: {message}")


# ---------------------------------------------------------------- files
def read_model(path: Any) -> Any:
    """The ModelProto in a file.

    Raises:
        NotFoundError: there is no such file.
        DataLossError: it holds no model.
        InvalidArgumentError: it is older or newer than what is read.
        UnimplementedError: the library onnx is not installed.
    """
    from google.protobuf.message import DecodeError

    model = library().ModelProto()
    try:
        model.ParseFromString(read_file(str(path)))
    except DecodeError as e:
        raise errors.DataLossError(None, None, f"{path} holds no ONNX model: {e}") from None
    if not model.HasField("graph") or not model.opset_import:
        raise errors.DataLossError(None, None, f"{path} holds no ONNX model: it has no graph")
    return model


def write_model(path: Any, model: Any) -> None:
    """Writes a ModelProto, whole or not at all."""
    write_file(str(path), model.SerializeToString())


def check_version(model: Any) -> int:
    """The version of ONNX's ops that a model was written for.

    Raises:
        InvalidArgumentError: it is not one that is read.
    """
    found = [entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx")]
    if not found or not _OLDEST <= found[0] <= OPSET:
        raise _invalid(
            f"it uses version {found[0] if found else 'none'} of ONNX's ops; read are {_OLDEST} to "
            f"{OPSET} (onnx.version_converter brings others there)"
        )
    version: int = found[0]
    return version
