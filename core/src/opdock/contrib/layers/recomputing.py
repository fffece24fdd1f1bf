"""`recompute_grad`: layers that are computed again for their gradients, so as not to be kept."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from opdock.autodiff.custom import fenced_call, used_variables
from opdock.autodiff.gradients import gradients
from opdock.contrib.framework.arg_scope import arg_scope, current_arg_scope
from opdock.graph.nodes.graph import get_default_graph
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.scopes import control_dependencies
from opdock.graph.variables.variable import Variable
from opdock.graph.variables.variable_scope import get_variable_scope, variable_scope
from opdock.ops.array import reshape
from opdock.ops.control import tuple as gated
from opdock.ops.identity import identity, stop_gradient
from opdock.ops.slicing import slice as sliced
from opdock.ops.sums import add_n
from opdock.util import nest

__all__ = ["recompute_grad", "wrapped_like"]


def wrapped_like(function: Any) -> Callable[[Any], Any]:
    """`functools.wraps`, but for a partial function, which has no name."""
    if isinstance(function, functools.partial):
        return lambda wrapper: wrapper
    return functools.wraps(function)


def recompute_grad(fn: Any = None, use_data_dep: Any = False, tupleize_grads: bool = False) -> Any:
    """A decorator: a function of tensors is computed again for its gradients.

    Variables are those of the variable scope that it is called in, which must be resources; each
    call needs a scope of its own. Where the function has an argument `is_recomputing`, it is told.

    Args:
        fn: the function; None to decorate later.
        use_data_dep: whether the second computation depends on gradients by data, so that nothing
            computes it before them.
        tupleize_grads: whether no gradient is used before all are computed.

    Returns:
        The function, or a decorator.

    Raises:
        ValueError: the function closes over a tensor or variable, which would get no gradient.
    """
    if fn is None:
        return functools.partial(
            recompute_grad, use_data_dep=use_data_dep, tupleize_grads=tupleize_grads
        )
    _check_closure(fn)

    @wrapped_like(fn)
    def recomputed(*args: Any) -> Any:
        for arg in args:
            if not isinstance(arg, Tensor):
                raise ValueError("All inputs to function must be Tensors")
        return _recomputed(fn, args, bool(use_data_dep), tupleize_grads)

    return recomputed


def _check_closure(fn: Any) -> None:
    names = getattr(getattr(fn, "__code__", None), "co_freevars", ())
    for name, cell in zip(names, getattr(fn, "__closure__", None) or (), strict=True):
        value = cell.cell_contents
        if isinstance(value, (Tensor, Variable)):
            raise ValueError(
                f"fn decorated with @recompute_grad closes over Tensor {value.name} (local "
                f"variable name: {name}). The decorated fn must not close over Tensors or "
                "Variables because gradients will NOT be computed for them through fn. To ensure "
                "correct gradients, make the Tensor an input to fn."
            )


def _recomputed(fn: Any, args: Any, by_data: bool, together: bool) -> Any:
    told = "is_recomputing" in inspect.signature(fn).parameters
    defaults, scope = current_arg_scope(), get_variable_scope()

    def used(outputs: Any, inputs: Sequence[Tensor]) -> list[Any]:
        return used_variables(get_default_graph(), nest.flatten(outputs), list(inputs))

    def forward(*inputs: Tensor) -> Any:
        outputs = fn(*inputs, **({"is_recomputing": False} if told else {}))
        made = used(outputs, inputs)

        def gradient(*grads: Any, variables: Any = None) -> Any:
            trained = list(variables or ())
            known = [g for g in grads if g is not None]
            with control_dependencies(known):
                again = [identity(x) for x in inputs]
                if by_data:
                    again = _after(known, again)
                with arg_scope(defaults), variable_scope(scope, reuse=True):
                    repeated = fn(*again, **({"is_recomputing": True} if told else {}))
            if {id(v) for v in used(repeated, again)} != {id(v) for v in made}:
                raise ValueError(
                    "The variables used on recompute were different than the variables originally "
                    "used. The function wrapped with @recompute_grad likley creates its own "
                    "variable scope with a default name and has been called twice in the same "
                    "enclosing scope. To fix, ensure each call to the function happens in its own "
                    "unique variable scope."
                )
            found = gradients(nest.flatten(repeated), [*again, *trained], list(grads))
            if together:
                found = _after(found, found) if by_data else gated(found)
            of_inputs, of_variables = found[: len(again)], found[len(again) :]
            return of_inputs if variables is None else (of_inputs, of_variables)

        return outputs, gradient

    return fenced_call(forward, *args)


def _after(first: Sequence[Any], then: Sequence[Any]) -> list[Any]:
    """Tensors that depend by data on others, though these add nothing."""
    corners = [
        reshape(sliced(t, [0] * (t.shape.ndims or 0), [1] * (t.shape.ndims or 0)), [])
        for t in first
        if t is not None
    ]
    total = add_n(corners)
    if not total.dtype.is_floating:
        raise ValueError("use_data_dep only supports floating dtypes.")
    tiny = float(np.finfo(total.dtype.as_numpy_dtype).tiny)
    nothing = stop_gradient(tiny * total)
    return [None if t is None else identity(t) + nothing for t in then]
