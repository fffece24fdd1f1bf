"""`tf.function` in a graph: a Python function whose operations run in the order it says."""

from __future__ import annotations

import functools
import inspect
import itertools
from collections.abc import Callable, Sequence
from typing import Any

from opdock import dtypes, errors
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.graph import get_default_graph
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.nodes.scopes import control_dependencies, name_scope
from opdock.ops.identity import identity

__all__ = ["function"]


class _Function:
    """A Python function that each call adds to the graph."""

    def __init__(self, python_function: Callable[..., Any], signature: Any, name: str) -> None:
        functools.update_wrapper(self, python_function)
        self.python_function = python_function
        self.input_signature = signature
        self._name = name
        self._variables: list[Any] | None = None

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Adds the function's operations, those with effects in the order of the function."""
        args = self._converted(args)
        graph = get_default_graph()
        before, known = len(graph.get_operations()), _variables(graph)
        with name_scope(self._name):
            result = self.python_function(*args, **kwargs)
            self._check_new([v for v in _variables(graph) if v not in known])
            effects = _in_order(graph.get_operations()[before:])
            return _after(effects, result)

    def _converted(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        if self.input_signature is None:
            return args
        specs = list(self.input_signature)
        own = len(args) - len(specs)
        if own not in (0, 1):
            raise ValueError(
                f"{self._name} takes {len(specs)} positional arguments by its input_signature, "
                f"but {len(args)} were given"
            )
        found = []
        for given, spec in zip(args[own:], specs, strict=True):
            tensor = convert_to_tensor(given, dtype=getattr(spec, "dtype", None))
            if not tensor.shape.is_compatible_with(spec.shape):
                raise ValueError(
                    "Python inputs incompatible with input_signature: "
                    f"{tensor} does not have shape {spec.shape}"
                )
            found.append(tensor)
        return (*args[:own], *found)

    def _check_new(self, made: list[Any]) -> None:
        if self._variables is not None and made:
            raise ValueError(
                "tf.function-decorated function tried to create variables on non-first call."
            )
        if self._variables is None:
            self._variables = made

    def get_concrete_function(self, *args: Any, **kwargs: Any) -> Any:
        """Raises UnimplementedError: each call adds the function's operations to the graph."""
        raise errors.UnimplementedError(
            None, None,
            f"{self._name}.get_concrete_function: opdock adds a function's operations to the graph "
            "at each call and keeps no function of its own; call it with placeholders instead.",
        )  # fmt: skip


def _variables(graph: Any) -> list[Any]:
    return graph.get_collection("variables") + graph.get_collection("local_variables")  # type: ignore[no-any-return]


def _in_order(made: Sequence[Operation]) -> list[Operation]:
    """Operations with effects or over state, each made to wait for the one before it."""
    ordered = [op for op in made if op.spec.has_effect or any(map(_is_state, op.inputs))]
    for first, second in itertools.pairwise(ordered):
        second._add_control_input(first)
    return ordered


def _is_state(tensor: Tensor) -> bool:
    return tensor.dtype._is_ref_dtype or tensor.dtype is dtypes.resource


def _after(effects: list[Operation], result: Any) -> Any:
    """The function's results, which wait for its effects."""
    if not effects:
        return result

    def waiting(value: Any) -> Any:
        if isinstance(value, Tensor):
            return identity(value)
        if isinstance(value, dict):
            return {k: waiting(v) for k, v in value.items()}
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return type(value)(*map(waiting, value))
        if isinstance(value, (list, tuple)):
            return type(value)(map(waiting, value))
        return value

    with control_dependencies(effects):
        if result is None:
            from opdock.ops.control import no_op

            return no_op()
        return waiting(result)


def function(
    func: Callable[..., Any] | None = None, input_signature: Any = None, autograph: bool = True,
    experimental_autograph_options: Any = None, experimental_relax_shapes: bool = False,
    experimental_compile: bool | None = None,
) -> Any:  # fmt: skip
    """Decorates a function of tensors whose effects happen in the order in which it has them.

    A call adds the function's operations to the graph that is being built. Variables may be made
    in the first call only. Python's own control flow runs while the graph is built: `if` and
    `while` over tensors need `tf.cond` and `tf.while_loop`, as AutoGraph is not there.

    Args:
        func: the function; without it a decorator is returned.
        input_signature: a `tf.TensorSpec` for each argument, which is checked.
        autograph, experimental_autograph_options: accepted for TF's signature.
        experimental_relax_shapes, experimental_compile: accepted for TF's signature.

    Raises:
        TypeError: `input_signature` is no sequence.
        ValueError: at a call, when variables are made again or the signature does not fit.
    """
    if input_signature is not None and not isinstance(input_signature, (list, tuple)):
        raise TypeError(
            f"input_signature must be either a tuple or a list, received {type(input_signature)}"
        )

    def decorate(inner: Callable[..., Any]) -> _Function:
        name = getattr(inner, "__name__", type(inner).__name__)
        # A scope at the top begins with a letter.
        plain = name.lstrip("_") if name.isidentifier() else ""
        inspect.signature(inner)
        return _Function(inner, input_signature, plain or "function")

    return decorate if func is None else decorate(func)
