"""`tf.py_function`: Python code over tensors that know their values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from opdock import dtypes
from opdock.autodiff.gradients import UnconnectedGradients, gradients
from opdock.dtypes import DType
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.operation import Tensor
from opdock.graph.variables.variable import Variable
from opdock.ops.fill import zeros_like
from opdock.ops.identity import placeholder
from opdock.ops.script import eager_py_func
from opdock.runtime.immediate import ImmediateGraph

__all__ = ["py_function"]


class _Call:
    """One call: the graph that the function built, what went in and what came out.

    Args:
        function: takes a tensor per array.
        arrays: the values of the tensors.
        types: those promised for the results.
    """

    def __init__(
        self, function: Callable[..., Any], arrays: tuple[Any, ...], types: list[DType]
    ) -> None:
        self.graph, self.arrays = ImmediateGraph(), arrays
        with self.graph.as_default():
            self.inputs = [self._input(array) for array in arrays]
            result = function(*self.inputs)
            several = isinstance(result, (list, tuple))
            flat = list(result) if several else [] if result is None else [result]
            if len(flat) == len(types):
                flat = [_checked(r, t) for r, t in zip(flat, types, strict=True)]
            # Another number of them is an error where they are handed out.
            self.outputs = flat

    def _input(self, array: Any) -> Tensor:
        kind = np.asarray(array).dtype
        dtype = dtypes.string if kind.kind in "SUO" else dtypes.as_dtype(kind)
        tensor = placeholder(dtype, np.shape(array))
        self.graph.know(tensor, array)
        return tensor

    def results(self) -> list[Any]:
        """The values that came out."""
        values = iter(self.graph.values([r for r in self.outputs if isinstance(r, Tensor)]))
        return [next(values) if isinstance(r, Tensor) else r for r in self.outputs]

    def gradients(self, grads: tuple[Any, ...]) -> list[Any]:
        """The gradients for the inputs that have one, of those for the outputs."""
        with self.graph.as_default():
            ys = [(y, g) for y, g in zip(self.outputs, grads, strict=True) if isinstance(y, Tensor)]
            xs = [x for x in self.inputs if x.dtype.is_floating or x.dtype.is_complex]
            if not ys:
                return self.graph.values([zeros_like(x) for x in xs])
            found = gradients(
                [y for y, _ in ys],
                xs,
                [convert_to_tensor(g, y.dtype) for y, g in ys],
                unconnected_gradients=UnconnectedGradients.ZERO,
            )
            return self.graph.values([convert_to_tensor(g) for g in found])

    def is_of(self, arrays: tuple[Any, ...]) -> bool:
        """Whether these were the arrays that went in."""
        pairs = zip(self.arrays, arrays, strict=True)
        return all(a is b or np.array_equal(a, b, equal_nan=False) for a, b in pairs)


def _checked(result: Any, dtype: DType) -> Any:
    if isinstance(result, Variable):
        raise RuntimeError(
            "Attempting to return a variable from an eagerly executed py_func. Only numeric data "
            "structures like Tensors or NumPy arrays should be returned; to return the value of a "
            "variable, make sure to obtain the Tensor backing it by calling `.read_value()` on "
            f"the variable in question: {result}"
        )
    if isinstance(result, (Tensor, np.ndarray, np.generic, str, bytes)):
        return result
    return convert_to_tensor(result, dtype)


class _Function:
    """A Python function that a graph calls, and its derivative.

    Args:
        function: the user's.
        types: those promised for its results.
    """

    def __init__(self, function: Callable[..., Any], types: list[DType]) -> None:
        self._function, self._types = function, types
        self._differentiated = False
        self._last: _Call | None = None

    def __call__(self, *arrays: Any) -> list[Any]:
        """The results."""
        call = _Call(self._function, arrays, self._types)
        results = call.results()
        if self._differentiated:
            self._last = call
        else:
            call.graph.close()
        return results

    def derivative(self) -> Callable[..., list[Any]]:
        """What takes the inputs and the gradients of the results, and gives those of the inputs.

        The graph of the last call serves if the inputs are its own; in a loop that goes back
        through many calls the function is called again.
        """
        self._differentiated = True

        def run(*arrays: Any) -> list[Any]:
            count = len(arrays) - len(self._types)
            inputs, grads = arrays[:count], arrays[count:]
            call, self._last = self._last, None
            if call is None or not call.is_of(inputs):
                call = _Call(self._function, inputs, self._types)
            found = call.gradients(grads)
            call.graph.close()
            return found

        return run


def py_function(func: Callable[..., Any], inp: Any, Tout: Any, name: str | None = None) -> Any:
    """Calls a Python function when the graph runs, with tensors that know their values.

    Args:
        func: takes a tensor per input, which has the method `numpy` and serves as an array, a
            number or a condition. What it computes with `tf` is computed at once.
        inp: a list of tensors.
        Tout: the type of the result, or a list of types; an empty one for none.
        name: a name for the operation.

    Returns:
        A tensor, a list of tensors, or the operation when there are no results. Gradients flow
        through what `func` computes with `tf`.

    Raises:
        ValueError: `func` is not callable.
        tf.errors.InvalidArgumentError: at run time, when the results are not as promised.
        tf.errors.UnknownError: at run time, when a result is a variable.
    """
    if not callable(func):
        raise ValueError(f"Expected func to be callable, got func of type {type(func)}")
    types = [dtypes.as_dtype(t) for t in (Tout if isinstance(Tout, (list, tuple)) else [Tout])]
    return eager_py_func(_Function(func, types), inp, Tout, name)
