"""Which kind of variable `tf.Variable` makes, and who has a say in it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from enum import Enum
from typing import Any, Final

from opdock.graph.nodes.graph import get_default_graph
from opdock.graph.nodes.scopes import program_around

__all__ = [
    "VariableAggregation", "VariableSynchronization", "disable_resource_variables",
    "enable_resource_variables", "resource_variables_enabled", "variable_creator_scope",
]  # fmt: skip

_default_use_resource = False


def enable_resource_variables() -> None:
    """From now on variables are resource variables unless they are asked not to be."""
    global _default_use_resource
    _default_use_resource = True


def disable_resource_variables() -> None:
    """From now on variables are reference variables unless they are asked not to be."""
    global _default_use_resource
    _default_use_resource = False


def resource_variables_enabled() -> bool:
    """Whether variables are resource variables by default."""
    return _default_use_resource


class VariableSynchronization(Enum):
    """How copies of a variable on several devices agree; one process has one copy."""

    AUTO = 0
    NONE = 1
    ON_WRITE = 2
    ON_READ = 3


class VariableAggregation(Enum):
    """How updates of several copies are combined; one process has one copy."""

    NONE = 0
    SUM = 1
    MEAN = 2
    ONLY_FIRST_REPLICA = 3
    ONLY_FIRST_TOWER = 3  # noqa: PIE796, the older name of the same


@contextlib.contextmanager
def variable_creator_scope(variable_creator: Callable[..., Any]) -> Iterator[None]:
    """Wraps the making of variables inside: `variable_creator(next_creator, **kwargs)`."""
    graph = get_default_graph()
    old = graph._variable_creator_stack
    graph._variable_creator_stack = mine = (*old, variable_creator)
    try:
        yield
    finally:
        if graph._variable_creator_stack is not mine:
            raise RuntimeError("Exiting variable_creator_scope without proper nesting.")
        graph._variable_creator_stack = old


# The arguments of `tf.Variable`; creators are given all of them.
_DEFAULTS: Final[dict[str, Any]] = {
    "initial_value": None, "trainable": None, "collections": None, "validate_shape": True,
    "caching_device": None, "name": None, "variable_def": None, "dtype": None,
    "expected_shape": None, "import_scope": None, "constraint": None, "use_resource": None,
    "synchronization": VariableSynchronization.AUTO, "aggregation": VariableAggregation.NONE,
    "shape": None,
}  # fmt: skip


def _arguments(args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    if len(args) > len(_DEFAULTS):
        raise TypeError(f"tf.Variable takes {len(_DEFAULTS)} arguments, got {len(args)}")
    found = {**_DEFAULTS, **dict(zip(_DEFAULTS, args)), **kwargs}
    if found["trainable"] is None:
        # What is read as the sum of copies is no parameter.
        found["trainable"] = found["synchronization"] is not VariableSynchronization.ON_READ
    return found


def _wrapped(wrap: Callable[..., Any], inner: Callable[..., Any]) -> Callable[..., Any]:
    return lambda **kwargs: wrap(inner, **kwargs)


def variable_class(resource: bool) -> Any:
    """The class of resource variables, or that of reference variables."""
    # Both are subclasses of what is defined here.
    from opdock.graph.variables import ref_variable, resource_variable

    return resource_variable.ResourceVariable if resource else ref_variable.RefVariable


class Flavoured(type):
    """Makes `tf.Variable(...)` the flavour that the arguments and the scope ask for."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if "_chooses" not in cls.__dict__:
            return super().__call__(*args, **kwargs)
        # The scope says which subclass, and makes variables.
        from opdock.graph.variables import variable_scope

        def create(**given: Any) -> Any:
            given.pop("trackable_parent", None)  # creators tell one another
            # Newer libraries say how functions make variables that run eagerly.
            given.pop("experimental_enable_variable_lifting", None)
            strategy = given.pop("distribute_strategy", None)
            use_resource = given.pop("use_resource", None)
            if program_around(get_default_graph()).eager:
                use_resource = True
            if use_resource is None:
                use_resource = variable_scope.get_variable_scope().use_resource
            if use_resource is None:
                use_resource = resource_variables_enabled()
            made = variable_class(use_resource)(**given)
            if strategy is not None:
                made._distribute_strategy = strategy
            return made

        maker: Callable[..., Any] = create
        for wrap in get_default_graph()._variable_creator_stack:
            maker = _wrapped(wrap, maker)
        return maker(**_arguments(args, kwargs))
