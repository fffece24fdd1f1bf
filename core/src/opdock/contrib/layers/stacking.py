"""The same layer several times, one upon the other."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.variables.variable_scope import variable_scope

__all__ = ["repeat", "stack"]


def repeat(
    inputs: Any, repetitions: int, layer: Callable[..., Any], *args: Any, **kwargs: Any
) -> Any:
    """Calls a layer several times, each with what the last one gave.

    Args:
        inputs: what the first one takes.
        repetitions: how many times.
        layer: a function with an argument `scope`, which is its name and a number each time.
        *args, **kwargs: its other arguments; `scope` among them is the scope around all and the
            name that is numbered.

    Returns:
        What the last one gave.
    """
    return _stacked(inputs, layer, "Repeat", [args] * repetitions, kwargs)


def stack(inputs: Any, layer: Callable[..., Any], stack_args: Any, **kwargs: Any) -> Any:
    """Calls a layer several times, each with what the last one gave and arguments of its own.

    Args:
        inputs: what the first one takes.
        layer: a function with an argument `scope`, which is its name and a number each time.
        stack_args: a list or tuple with each call's arguments: a list of them, or the only one.
        **kwargs: arguments of every call; `scope` among them is the scope around all and the name
            that is numbered.

    Returns:
        What the last one gave.

    Raises:
        ValueError: `stack_args` is neither a list nor a tuple.
    """
    if not isinstance(stack_args, (list, tuple)):
        raise ValueError("stack_args need to be a list or tuple")
    each = [given if isinstance(given, (list, tuple)) else [given] for given in stack_args]
    return _stacked(inputs, layer, "Stack", each, kwargs)


def _stacked(
    inputs: Any, layer: Any, title: str, each: Iterable[Iterable[Any]], kwargs: dict[str, Any]
) -> Any:
    scope = kwargs.pop("scope", None)
    with variable_scope(scope, title, [inputs]):
        outputs = convert_to_tensor(inputs)
        if scope is None:
            # `functools.partial` has no name but that of its function.
            named = layer if hasattr(layer, "__name__") else getattr(layer, "func", None)
            scope = getattr(named, "__name__", title.lower())
        for number, args in enumerate(each, 1):
            outputs = layer(outputs, *args, **kwargs, scope=f"{scope}_{number}")
        return outputs
