"""Python functions as kernels: they get host arrays and give host arrays."""

from __future__ import annotations

import functools
import traceback
from typing import Any

import numpy as np

from opdock import errors
from opdock.dtypes import DType, as_dtype, proto_name, string
from opdock.failures import failures
from opdock.graph.control.python_functions import find
from opdock.kernels.array_api import invalid
from opdock.kernels.portable import portable
from opdock.kernels.select.signature import NodeSig

_CLASSES: tuple[tuple[type[Exception], type[errors.OpError]], ...] = (
    (TypeError, errors.InvalidArgumentError),
    (ValueError, errors.InvalidArgumentError),
    (StopIteration, errors.OutOfRangeError),
    (MemoryError, errors.ResourceExhaustedError),
    (NotImplementedError, errors.UnimplementedError),
)


@portable(
    "PyFunc", "PyFuncStateless", "EagerPyFunc", host_inputs=("input",), host_outputs=("output",)
)
def py_func(xp: Any, sig: NodeSig) -> Any:
    """Calls the function behind the token."""
    token, wanted = sig.attrs["token"], [d.base_dtype for d in sig.attrs["Tout"]]
    assert sig.resources is not None
    apart = sig.resources.apart

    def run(*inputs: Any) -> Any:
        function = find(token)
        if function is None:
            raise invalid(
                f"callback {token} is not found: the graph that made it is gone, or comes from "
                "another process"
            )
        # The function may write to what it gets; kernels may not.
        arguments = [np.array(x, order="C")[()] for x in inputs]
        results = _listed(apart(functools.partial(_call, function, arguments)))
        if len(results) != len(wanted):
            raise invalid(
                f"{token} returns {len(results)} values, but expects to see {len(wanted)} values."
            )
        out = tuple(
            _checked(token, i, r, d) for i, (r, d) in enumerate(zip(results, wanted, strict=True))
        )
        return out[0] if len(out) == 1 else out

    return run


def _call(function: Any, arguments: list[Any]) -> Any:
    try:
        return function(*arguments)
    except failures(Exception) as e:
        cls: Any = next((c for kind, c in _CLASSES if isinstance(e, kind)), errors.UnknownError)
        text = "".join(traceback.format_exception(e))
        raise cls(None, None, f"{type(e).__name__}: {e}\n{text}") from e


def _listed(result: Any) -> list[Any]:
    if result is None:
        return []
    return list(result) if isinstance(result, (list, tuple)) else [result]


def _checked(token: str, index: int, value: Any, wanted: DType) -> Any:
    array = np.asarray(value)
    if array.dtype.kind in "SUO":
        array = _strings(np.asarray(value, object))
        actual = string
    else:
        try:
            actual = as_dtype(array.dtype)
        except TypeError:
            raise errors.InternalError(
                None, None, f"Unsupported numpy data type {array.dtype}"
            ) from None
        # What the function returned may change when it runs again, and be in any byte order.
        array = np.array(array, actual.np, order="C")
    if actual is not wanted:
        raise invalid(
            f"{index}-th value returned by {token} is {proto_name(actual)}, but expects "
            f"{proto_name(wanted)}"
        )
    return array


def _strings(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    out = np.empty(array.shape, object)
    for place in np.ndindex(array.shape):
        item = array[place]
        if not isinstance(item, (str, bytes)):
            raise errors.InternalError(None, None, f"Unsupported object type {type(item).__name__}")
        out[place] = item.encode() if isinstance(item, str) else item
    return out
