"""Gradients of functions: `tf.contrib.eager.gradients_function` and its kin."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from opdock.autodiff.tape import GradientTape
from opdock.graph.nodes.composite import IndexedSlices
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.operation import Tensor
from opdock.graph.variables.variable import Variable
from opdock.ops.identity import identity
from opdock.util import nest

__all__ = [
    "gradients_function", "implicit_grad", "implicit_val_and_grad", "make_vjp",
    "val_and_grad_function",
]  # fmt: skip

Function = Callable[..., Any]
Parameters = Sequence[int] | Sequence[str] | None


def implicit_val_and_grad(f: Function) -> Function:
    """What a function returns, and its gradients for the variables that it reads.

    Args:
        f: returns a tensor to differentiate.

    Returns:
        A function of the same arguments that returns (value, [(gradient, variable), ...]).

    Raises:
        ValueError: when it is called: `f` returns nothing, or reads no trainable variable.
    """

    @functools.wraps(f)
    def grad_fn(*args: Any, **kwargs: Any) -> tuple[Any, list[tuple[Any, Any]]]:
        with GradientTape() as tape:
            value = f(*args, **kwargs)
        if value is None:
            raise ValueError(
                "Cannot differentiate a function that returns None; did you forget to return a "
                f"value from {f.__name__}?"
            )
        variables = tape.watched_variables()
        if not variables:
            raise ValueError(
                "No trainable variables were accessed while the function was being computed."
            )
        found = tape.gradient(value, list(variables))
        return value, list(zip(found, variables, strict=True))

    return grad_fn


def implicit_grad(f: Function) -> Function:
    """`implicit_val_and_grad` without the value."""
    both = implicit_val_and_grad(f)

    @functools.wraps(f)
    def grad_fn(*args: Any, **kwargs: Any) -> list[tuple[Any, Any]]:
        found: list[tuple[Any, Any]] = both(*args, **kwargs)[1]
        return found

    return grad_fn


def make_vjp(f: Function, params: Parameters = None, persistent: bool = True) -> Function:
    """What a function returns, and its vector-Jacobian product as a function.

    Args:
        f: the function.
        params: the arguments to differentiate for, by positions or names; all by default.
        persistent: whether the product may be asked for more than once.

    Returns:
        A function of the same arguments that returns (value, vjp); `vjp(dy)` gives a gradient for
        each of the arguments asked for, with ones for a `dy` that is None.
    """
    asked = None if params is None else _positions(f, params)

    @functools.wraps(f)
    def decorated(*args: Any, **kwargs: Any) -> tuple[Any, Function]:
        assert not kwargs, "The gradient function can't take keyword arguments."
        given = list(args)
        wanted = range(len(given)) if asked is None else asked
        for i in wanted:  # what is not differentiated for may be anything, a list of strides say
            if isinstance(given[i], dict):
                given[i] = nest.map_structure(convert_to_tensor, given[i])
            elif not isinstance(given[i], (IndexedSlices, Variable)):
                given[i] = convert_to_tensor(given[i])
        _separate(given, wanted)
        sources = [given[i] for i in wanted]
        with GradientTape(persistent=persistent) as tape:
            tape.watch(sources)
            # A tensor that is returned as it is has a gradient for itself.
            result = f(*given)
        if result is None:
            raise ValueError(
                "Cannot differentiate a function that returns None; did you forget to return a "
                f"value from {f.__name__}?"
            )

        def vjp(dy: Any = None) -> Any:
            if dy is not None:
                dy = nest.map_structure(convert_to_tensor, dy)
            return tape.gradient(result, sources, output_gradients=dy)

        return result, vjp

    return decorated


def val_and_grad_function(f: Function, params: Parameters = None) -> Function:
    """What a function returns, and its gradients for its arguments.

    Args:
        f: the function; it returns a scalar, or the gradients of a sum are meant.
        params: the arguments to differentiate for, by positions or names; all by default.

    Returns:
        A function of the same arguments, and `dy`, that returns (value, gradients).
    """
    made = make_vjp(f, params, persistent=False)

    @functools.wraps(f)
    def decorated(*args: Any, dy: Any = None, **kwargs: Any) -> tuple[Any, Any]:
        if kwargs:
            raise ValueError("Functions to be differentiated cannot receive keyword arguments.")
        value, vjp = made(*args)
        return value, vjp(dy)

    return decorated


def gradients_function(f: Function, params: Parameters = None) -> Function:
    """`val_and_grad_function` without the value."""
    both = val_and_grad_function(f, params)

    @functools.wraps(f)
    def decorated(*args: Any, **kwargs: Any) -> Any:
        return both(*args, **kwargs)[1]

    return decorated


def _separate(given: list[Any], wanted: Sequence[int]) -> None:
    """Has arguments that are one tensor be several, each of which has a gradient of its own."""
    seen: set[int] = set()
    for i in wanted:
        if isinstance(given[i], Tensor) and id(given[i]) in seen:
            given[i] = identity(given[i])
        seen.add(id(given[i]))


def _positions(f: Function, params: Sequence[int] | Sequence[str]) -> list[int]:
    """The arguments by their positions.

    Raises:
        ValueError: one is asked for twice, by two kinds of names, or is not there.
    """
    names = list(inspect.signature(f).parameters)
    if not params or not all(isinstance(p, (int, str)) for p in params):
        raise ValueError(f"params must be all strings or all integers; got {params}.")
    found = [
        p if isinstance(p, int) else names.index(p)
        for p in params
        if p in names or isinstance(p, int)
    ]
    if len({type(p) for p in params}) > 1 or len(found) < len(params):
        raise ValueError(f"params must be all strings or all integers; got {params}.")
    return found
