"""What removed functions did, where nothing that is left does the same."""

from __future__ import annotations

import functools
import inspect
import os
import platform
import time
from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

import numpy as np

negative_infinity: Final = -np.inf
zero: Final = 0.0
negative_zero: Final = -0.0


def nothing(*args: Any, **kwargs: Any) -> None:
    """Does nothing: what the function set is not there any more."""


# ------------------------------------------------------------------------------------- NumPy
def asscalar(a: Any) -> Any:
    """An array of one element as a Python scalar."""
    return a.item()


def asfarray(a: Any, dtype: Any = np.float64) -> np.ndarray[Any, Any]:
    """An array of floats; other dtypes than inexact ones become float64."""
    wanted = np.dtype(dtype)
    return np.asarray(a, wanted if np.issubdtype(wanted, np.inexact) else np.float64)


def msort(a: Any) -> np.ndarray[Any, Any]:
    """A copy, sorted along the first axis."""
    return np.sort(a, axis=0)


def in1d(ar1: Any, ar2: Any, assume_unique: bool = False, invert: bool = False) -> Any:
    """Whether each element of the flattened first array is in the second."""
    return np.isin(np.asarray(ar1).ravel(), ar2, assume_unique=assume_unique, invert=invert)


def find_common_type(array_types: Iterable[Any], scalar_types: Iterable[Any]) -> np.dtype[Any]:
    """The dtype that arrays and scalars of these dtypes give; scalars count by kind alone."""
    arrays = [np.dtype(t) for t in array_types]
    scalars = [np.dtype(t) for t in scalar_types]
    if not arrays or not scalars:
        return np.result_type(*arrays, *scalars)
    array, scalar = np.result_type(*arrays), np.result_type(*scalars)
    kinds = "?buifc"
    return scalar if kinds.find(scalar.kind) > kinds.find(array.kind) else array


def obj2sctype(rep: Any, default: Any = None) -> Any:
    """The scalar type of a dtype, an array or a type."""
    if isinstance(rep, type) and issubclass(rep, np.generic):
        return rep
    try:
        return np.dtype(getattr(rep, "dtype", rep)).type
    except TypeError:
        return default


def issctype(rep: Any) -> bool:
    """Whether this stands for a scalar type."""
    return isinstance(rep, type | np.dtype) and obj2sctype(rep) not in (None, np.object_)


def issubclass_(arg1: Any, arg2: Any) -> bool:
    """`issubclass`, but False for what is no class."""
    return isinstance(arg1, type) and issubclass(arg1, arg2)


def issubsctype(arg1: Any, arg2: Any) -> bool:
    """Whether one scalar type is below another."""
    return issubclass(obj2sctype(arg1), obj2sctype(arg2))


def sctype2char(sctype: Any) -> str:
    """The character code of a scalar type."""
    return str(np.dtype(sctype).char)


sctypes: Final = {
    "int": [np.int8, np.int16, np.int32, np.int64],
    "uint": [np.uint8, np.uint16, np.uint32, np.uint64],
    "float": [np.float16, np.float32, np.float64, np.longdouble],
    "complex": [np.complex64, np.complex128, np.clongdouble],
    "others": [bool, object, bytes, str, np.void],
}


class _Cast(dict[Any, Callable[[Any], Any]]):
    """`np.cast[dtype](x)`: for every dtype, the function that converts to it."""

    def __missing__(self, dtype: Any) -> Callable[[Any], Any]:
        return lambda x: np.asarray(x).astype(dtype)


cast: Final = _Cast()


def set_string_function(f: Callable[[Any], str] | None, repr: bool = True) -> None:
    """Sets the function that writes arrays."""
    np.set_printoptions(override_repr=f)  # type: ignore[call-overload,unused-ignore]


def disp(mesg: Any, device: Any = None, linefeed: bool = True) -> None:
    """Writes a message to a device, stdout by default."""
    print(mesg, file=device, end="\n" if linefeed else "", flush=True)


def fast_copy_and_transpose(a: Any) -> np.ndarray[Any, Any]:
    """A copy of the transposed array."""
    return np.array(np.asarray(a).T)


def random_integers(low: int, high: int | None = None, size: Any = None) -> Any:
    """Random integers between two bounds, both included."""
    return np.random.randint(1 if high is None else low, (low if high is None else high) + 1, size)  # noqa: NPY002


def itemset(self: np.ndarray[Any, Any], *args: Any) -> None:
    """`ndarray.itemset`: sets one element, the only one or that at a flat or full index."""
    *index, value = args
    if not index and self.size != 1:
        raise ValueError("can only convert an array of size 1 to a Python scalar")
    at = index[0] if index else 0
    if isinstance(at, tuple) or len(index) > 1:
        self[tuple(index) if len(index) > 1 else at] = value
    else:
        self.flat[at] = value


def newbyteorder(self: np.ndarray[Any, Any], new_order: str = "S") -> np.ndarray[Any, Any]:
    """`ndarray.newbyteorder`: the same bytes, read in another order."""
    return self.view(self.dtype.newbyteorder(new_order))  # type: ignore[arg-type,unused-ignore]


# ------------------------------------------------------------------------------------ Python
class ArgSpec(NamedTuple):
    """What `getargspec` gave."""

    args: list[str]
    varargs: str | None
    keywords: str | None
    defaults: tuple[Any, ...] | None


def getargspec(func: Any) -> ArgSpec:
    """The arguments of a function.

    Raises:
        ValueError: it has keyword-only arguments, as `inspect.getargspec` said.
    """
    full = inspect.getfullargspec(func)
    if full.kwonlyargs:
        raise ValueError(
            "Function has keyword-only parameters or annotations, use getfullargspec() API which "
            "can support them"
        )
    return ArgSpec(full.args, full.varargs, full.varkw, full.defaults)


def formatargspec(
    args: list[str],
    varargs: str | None = None,
    varkw: str | None = None,
    defaults: tuple[Any, ...] | None = None,
    *unused: Any,
    **options: Any,
) -> str:
    """An argument list as text, "(a, b=1, *args, **kwargs)"."""
    first = len(args) - len(defaults or ())
    words = [
        arg if i < first else f"{arg}={(defaults or ())[i - first]!r}" for i, arg in enumerate(args)
    ]
    words += [f"*{varargs}"] if varargs else []
    words += [f"**{varkw}"] if varkw else []
    return f"({', '.join(words)})"


def getmoduleinfo(path: str) -> tuple[str, str] | None:
    """The name and suffix of a module's file; None for another file."""
    name = inspect.getmodulename(path)
    return None if name is None else (name, os.path.splitext(path)[1])


def clock() -> float:
    """Processor time, as `time.clock` told it on Unix."""
    return time.process_time()


def linux_distribution(*args: Any, **kwargs: Any) -> tuple[str, str, str]:
    """Name, version and code name of the distribution; empty where there is none."""
    try:
        release = platform.freedesktop_os_release()
    except OSError:
        return "", "", ""
    found = (release.get(k, "") for k in ("NAME", "VERSION_ID", "VERSION_CODENAME"))
    name, version, code = found
    return name, version, code


def assert_dict_contains_subset(self: Any, subset: Any, dictionary: Any, msg: Any = None) -> None:
    """`TestCase.assertDictContainsSubset`."""
    self.assertEqual(dictionary, {**dictionary, **subset}, msg)  # noqa: PT009


# ------------------------------------------------------------------------------------ Pillow
def text_size(self: Any, text: str, *args: Any, **kwargs: Any) -> tuple[int, int]:
    """`FreeTypeFont.getsize`: width and height of a text."""
    _, _, right, bottom = self.getbbox(text, *args, **kwargs)
    return int(right), int(bottom)


def drawn_text_size(self: Any, text: str, font: Any = None, *args: Any, **kwargs: Any) -> Any:
    """`ImageDraw.textsize`: width and height of a text as it would be drawn."""
    left, top, right, bottom = self.textbbox((0, 0), text, font, *args, **kwargs)
    return int(right - min(left, 0)), int(bottom - min(top, 0))


# -------------------------------------------------------------------------------------- YAML
def yaml_loader(function: Callable[..., Any]) -> Callable[..., Any]:
    """`yaml.load` that may be called without a loader: then with the one that runs no code."""
    import yaml  # type: ignore[import-untyped,unused-ignore]

    @functools.wraps(function)
    def load(stream: Any, Loader: Any = None) -> Any:
        return function(stream, Loader=yaml.SafeLoader if Loader is None else Loader)

    return load


# -------------------------------------------------------------------------------------- h5py
class DecodedText(str):
    """Text that can be decoded, as attributes of HDF5 files could when they were bytes."""

    __slots__ = ()

    def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        """The text."""
        return str(self)


def decodable(value: Any) -> Any:
    """An attribute's value, with texts that have `decode`."""
    if isinstance(value, str):
        return DecodedText(value)
    if isinstance(value, np.ndarray) and value.dtype == object:
        return np.array([decodable(v) for v in value.ravel()], dtype=object).reshape(value.shape)
    return value
