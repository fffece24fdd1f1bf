"""What rewritten code calls in the place of Python's own functions."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any, Final

from opdock import dtypes
from opdock.graph.nodes.operation import Tensor, is_tensor
from opdock.graph.nodes.scopes import control_dependencies
from opdock.ops import elementary, fill
from opdock.ops.arithmetic import maximum
from opdock.ops.array import rank, shape
from opdock.ops.cast import cast
from opdock.ops.check import Assert
from opdock.ops.composed.tensor_array import TensorArray
from opdock.ops.control import cond
from opdock.ops.encoding import as_string, string_to_number
from opdock.ops.rewriting.rules import OVERLOADED
from opdock.ops.script import py_func
from opdock.ops.strings import string_join
from opdock.ops.tensor_list import tensor_list_length_op

__all__ = ["len_", "overload_of"]

_MISSING: Final = object()


def abs_(x: Any) -> Any:
    """`abs`."""
    return elementary.abs(x) if is_tensor(x) else builtins.abs(x)


def float_(x: Any = 0) -> Any:
    """`float`: of a tensor, a float32."""
    return _number(x, dtypes.float32) if is_tensor(x) else float(x)


def int_(x: Any = 0, base: Any = _MISSING) -> Any:
    """`int`: of a tensor, an int32.

    Raises:
        NotImplementedError: of a tensor, to another base than 10.
    """
    if not is_tensor(x):
        return int(x) if base is _MISSING else int(x, base)
    if base not in (10, _MISSING):
        raise NotImplementedError(f"base {base} not supported for int")
    return _number(x, dtypes.int32)


def _number(x: Any, dtype: dtypes.DType) -> Any:
    text = x.dtype.base_dtype is dtypes.string
    return string_to_number(x, out_type=dtype) if text else cast(x, dtype)


def len_(s: Any) -> Any:
    """`len`: of a tensor, the size of its first dimension, a number where that is known.

    Raises:
        ValueError: a tensor is a scalar.
    """
    if isinstance(s, TensorArray):
        return s.size()
    if not is_tensor(s):
        return len(s)
    known = s.shape.raw
    if s.dtype.base_dtype is dtypes.variant and not known:
        return tensor_list_length_op(s)
    if known == ():
        raise ValueError(f"len requires a non-scalar tensor, got one of shape {s.shape}")
    if known is not None:
        return shape(s)[0] if known[0] is None else known[0]
    return cond(rank(s) > 0, lambda: shape(s)[0], lambda: _no_length(s))


def _no_length(s: Tensor) -> Any:
    text = string_join(["len requires non-zero rank, got ", as_string(rank(s))])
    with control_dependencies([Assert(False, [text])]):
        return shape(shape(s))[0]


def print_(*objects: Any, **kwargs: Any) -> Any:
    """`print`: of tensors, their values when the graph runs.

    Raises:
        ValueError: there is an argument that `print` does not have.
    """
    unknown = kwargs.keys() - {"sep", "end", "file", "flush"}
    if unknown:
        raise ValueError(f"invalid keyword arguments: {tuple(unknown)}")
    if not any(map(is_tensor, objects)):
        print(*objects, **kwargs)
        return None
    places = [i for i, value in enumerate(objects) if is_tensor(value)]
    options = {"flush": True, **kwargs}

    def shown(*values: Any) -> int:
        full = list(objects)
        for i, value in zip(places, values, strict=True):
            full[i] = value.decode("utf-8") if isinstance(value, bytes) else value
        print(*full, **options)
        return 0

    return py_func(shown, [objects[i] for i in places], dtypes.int64, stateful=True)


def range_(start_or_stop: Any, stop: Any = _MISSING, step: Any = _MISSING) -> Any:
    """`range`: of tensors, a tensor of the numbers."""
    given = [start_or_stop, *(v for v in (stop, step) if v is not _MISSING)]
    if not any(map(is_tensor, given)):
        return range(*given)
    if step is _MISSING:
        # As in Python, there are no numbers where the end is before the start.
        given[-1] = maximum(given[-2] if len(given) == 2 else 0, given[-1])
    return fill.range(*given)


def enumerate_(s: Any, start: Any = 0) -> Any:
    """`enumerate`: of a dataset, another one."""
    return s.enumerate(start) if _is_dataset(s) else enumerate(s, start)


def zip_(*iterables: Any, **kwargs: Any) -> Any:
    """`zip`: of datasets, another one."""
    if iterables and all(map(_is_dataset, iterables)):
        return type(iterables[0]).zip(iterables)
    return zip(*iterables, **kwargs)


def _is_dataset(value: Any) -> bool:
    return hasattr(value, "_staged_loop") and hasattr(value, "enumerate")


_OVERLOADS: Final[dict[Any, Callable[..., Any]]] = {
    abs: abs_, enumerate: enumerate_, float: float_, int: int_, len: len_, print: print_,
    range: range_, zip: zip_,
}  # fmt: skip
assert _OVERLOADS.keys() == OVERLOADED


def overload_of(function: Any) -> Callable[..., Any]:
    """What stands for one of Python's functions, or the function itself."""
    found: Callable[..., Any] = _OVERLOADS.get(function, function)
    return found
