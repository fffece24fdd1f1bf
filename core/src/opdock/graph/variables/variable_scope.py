"""Variable scopes and `get_variable`: variables by name, made once and shared."""

from __future__ import annotations

import contextlib
import copy
import functools
import inspect
import threading
from collections.abc import Callable, Iterator
from enum import Enum
from typing import Any

from opdock import dtypes
from opdock.graph.nodes.collections import GraphKeys
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.graph import Graph, get_default_graph
from opdock.graph.nodes.operation import graph_behind
from opdock.graph.nodes.scopes import name_scope
from opdock.graph.variables.scope_counts import ScopeCounts
from opdock.graph.variables.variable_store import VariableStore

__all__ = [
    "AUTO_REUSE", "VariableScope", "get_local_variable", "get_variable", "get_variable_scope",
    "no_regularizer", "variable_op_scope", "variable_scope",
]  # fmt: skip


class _Reuse(Enum):
    AUTO_REUSE = 1


AUTO_REUSE = _Reuse.AUTO_REUSE
"""For `reuse=`: make a variable when it is missing, else share it."""

_DEFAULT: Any = object()


class VariableScope:
    """What `get_variable` takes from its surroundings: a name prefix and defaults.

    Attributes:
        name: the prefix.
        reuse: True (variables must exist), False or None (must not), or AUTO_REUSE.
        initializer, regularizer, caching_device, partitioner, custom_getter, dtype, constraint:
            defaults for `get_variable`.
        use_resource: whether variables are resource variables.
    """

    def __init__(
        self,
        reuse: Any,
        name: str = "",
        initializer: Any = None,
        regularizer: Any = None,
        caching_device: Any = None,
        partitioner: Any = None,
        custom_getter: Any = None,
        name_scope: str = "",
        dtype: Any = dtypes.float32,
        use_resource: bool | None = None,
        constraint: Any = None,
    ) -> None:
        self.name = name
        self.initializer = initializer
        self.regularizer = regularizer
        self.reuse = reuse
        self.caching_device = caching_device
        self.partitioner = partitioner
        self.custom_getter = custom_getter
        self.original_name_scope = name_scope
        self.dtype = dtypes.as_dtype(dtype)
        self.use_resource = use_resource
        self.constraint = constraint

    def reuse_variables(self) -> None:
        """From now on variables of this scope must exist."""
        self.reuse = True

    def set_initializer(self, initializer: Any) -> None:
        """Sets the default initializer."""
        self.initializer = initializer

    def set_dtype(self, dtype: Any) -> None:
        """Sets the default type."""
        self.dtype = dtypes.as_dtype(dtype)

    def set_use_resource(self, use_resource: bool) -> None:
        """Sets whether variables are resource variables."""
        self.use_resource = use_resource

    def set_regularizer(self, regularizer: Any) -> None:
        """Sets the default regularizer."""
        self.regularizer = regularizer

    def set_caching_device(self, caching_device: Any) -> None:
        """Sets where reads are placed."""
        self.caching_device = caching_device

    def set_partitioner(self, partitioner: Any) -> None:
        """Sets the default partitioner."""
        self.partitioner = partitioner

    def set_custom_getter(self, custom_getter: Any) -> None:
        """Sets the custom getter."""
        self.custom_getter = custom_getter

    def get_collection(self, name: str) -> list[Any]:
        """The items of a collection that belong to this scope."""
        return get_default_graph().get_collection(name, self.name + "/" if self.name else None)

    def trainable_variables(self) -> list[Any]:
        """The trainable variables of this scope."""
        return self.get_collection(GraphKeys.TRAINABLE_VARIABLES)

    def global_variables(self) -> list[Any]:
        """The global variables of this scope."""
        return self.get_collection(GraphKeys.GLOBAL_VARIABLES)

    def local_variables(self) -> list[Any]:
        """The local variables of this scope."""
        return self.get_collection(GraphKeys.LOCAL_VARIABLES)

    def get_variable(self, var_store: VariableStore, name: str, *args: Any, **kwargs: Any) -> Any:
        """`get_variable` with this scope's prefix and defaults, and the store's arguments."""
        if args:
            bound = inspect.signature(var_store.get_variable).bind_partial(name, *args, **kwargs)
            kwargs = {key: value for key, value in bound.arguments.items() if key != "name"}
        full_name = f"{self.name}/{name}" if self.name else name
        for key in (
            "regularizer",
            "caching_device",
            "partitioner",
            "custom_getter",
            "constraint",
            "use_resource",
        ):
            if kwargs.get(key) is None:
                kwargs[key] = getattr(self, key)
        if get_default_graph().eager:
            # Scopes ask for names there; who shares variables is up to the store.
            kwargs["reuse"] = False
        elif kwargs.get("reuse") is None:
            kwargs["reuse"] = self.reuse or False
        # Variables are named by the variable scope alone; name scopes do not count.
        with name_scope(None):
            _check_constant(kwargs.get("initializer"), kwargs.get("dtype"))
            if kwargs.get("initializer") is None:
                kwargs["initializer"] = self.initializer
            if kwargs.get("dtype") is None:
                kwargs["dtype"] = self.dtype
            return var_store.get_variable(full_name, **kwargs)


def _check_constant(initializer: Any, dtype: Any) -> None:
    """A constant decides the type of its variable; asking for another one is an error."""
    if initializer is None or callable(initializer) or dtype is None:
        return
    own, asked = convert_to_tensor(initializer).dtype.base_dtype, dtypes.as_dtype(dtype).base_dtype
    if own is not asked:
        raise ValueError(f"Initializer type '{own}' and explicit dtype '{asked}' don't match.")


# ---------------------------------------------------------------- per-graph state
class _State(threading.local):
    """The current scope of a graph, and how often each scope name was opened, in each thread."""

    def __init__(self) -> None:
        self.current = VariableScope(False)
        self.counts = ScopeCounts()


def _state() -> _State:
    scoped = get_default_graph()._scoped_state
    state: _State | None = scoped.get("variable_scope")
    if state is None:
        state = scoped["variable_scope"] = _State()
    return state


def variable_store() -> VariableStore:
    """The variables that `get_variable` made in the default graph."""
    scoped = get_default_graph()._scoped_state
    store: VariableStore | None = scoped.get("variable_store")
    if store is None:
        store = scoped["variable_store"] = VariableStore()
    return store


def get_variable_scope() -> VariableScope:
    """The current variable scope."""
    return _state().current


def get_variable(
    name: str,
    shape: Any = None,
    dtype: Any = None,
    initializer: Any = None,
    regularizer: Any = None,
    trainable: bool | None = None,
    collections: Any = None,
    caching_device: Any = None,
    partitioner: Any = None,
    validate_shape: bool = True,
    use_resource: bool | None = None,
    custom_getter: Callable[..., Any] | None = None,
    constraint: Any = None,
    synchronization: Any = None,
    aggregation: Any = None,
) -> Any:
    """The variable of that name in the current scope: made, or shared, as the scope's `reuse` says.

    Args:
        name: the name below the scope's.
        shape: the shape; not with a constant initializer.
        dtype: the type, float32 by default.
        initializer: an initializer object, function, or constant; glorot uniform by default.
        regularizer: a function from the variable to a loss, collected as REGULARIZATION_LOSSES.
        trainable: whether optimizers update it.
        collections: collections to add it to.
        caching_device: where reads are placed.
        partitioner: splits the variable into several.
        validate_shape: whether the initial value must have a known shape.
        use_resource: make a resource variable.
        custom_getter: called in place of the getter, with the getter as first argument.
        constraint: applied after each update.
        synchronization, aggregation: for variables with copies.

    Raises:
        ValueError: the variable exists and must not, or the other way round, or the shape is
            missing, unknown or different.
    """
    return get_variable_scope().get_variable(
        variable_store(),
        name,
        shape=shape,
        dtype=dtype,
        initializer=initializer,
        regularizer=regularizer,
        trainable=trainable,
        collections=collections,
        caching_device=caching_device,
        partitioner=partitioner,
        validate_shape=validate_shape,
        use_resource=use_resource,
        custom_getter=custom_getter,
        constraint=constraint,
        synchronization=synchronization,
        aggregation=aggregation,
    )


def get_local_variable(
    name: str,
    shape: Any = None,
    dtype: Any = None,
    initializer: Any = None,
    regularizer: Any = None,
    trainable: bool | None = False,
    collections: Any = None,
    caching_device: Any = None,
    partitioner: Any = None,
    validate_shape: bool = True,
    use_resource: bool | None = None,
    custom_getter: Callable[..., Any] | None = None,
    constraint: Any = None,
    synchronization: Any = None,
    aggregation: Any = None,
) -> Any:
    """`get_variable` for a local variable: not trained, not saved, in LOCAL_VARIABLES.

    Args:
        name: the variable's name.
        shape: its shape.
        dtype: its element type, float32 by default.
        initializer: makes its first value; the scope's by default.
        regularizer: makes a loss of it.
        trainable: it is not, whatever is given.
        collections: beside LOCAL_VARIABLES, in which it is.
        caching_device: where reads are cached.
        partitioner: says into how many parts it is cut.
        validate_shape: whether the first value's shape has to be known.
        use_resource: whether it is a resource variable.
        custom_getter: called in place of this.
        constraint: what optimizers apply to it after each update.
        synchronization: when copies of replicas are brought together.
        aggregation: how copies of replicas are.
    """
    keys = [k for k in collections or [] if k != GraphKeys.LOCAL_VARIABLES]
    return get_variable(
        name, shape, dtype, initializer, regularizer, False, [*keys, GraphKeys.LOCAL_VARIABLES],
        caching_device, partitioner, validate_shape, use_resource, custom_getter, constraint,
        synchronization, aggregation,
    )  # fmt: skip


# ---------------------------------------------------------------- the context manager
class variable_scope:
    """Context manager that opens a variable scope, and a name scope with it.

    Args:
        name_or_scope: a name, a VariableScope to enter again, or None with `default_name`.
        default_name: used, made unique, when `name_or_scope` is None.
        values: tensors that determine the graph.
        initializer, regularizer, caching_device, partitioner, custom_getter, dtype, use_resource,
            constraint: defaults for variables inside.
        reuse: True, None (inherit) or AUTO_REUSE.
        auxiliary_name_scope: whether to open a name scope too.

    Raises:
        ValueError: the arguments contradict each other.
        TypeError: `name_or_scope` is neither a string nor a scope.
    """

    def __init__(
        self,
        name_or_scope: Any,
        default_name: str | None = None,
        values: Any = None,
        initializer: Any = None,
        regularizer: Any = None,
        caching_device: Any = None,
        partitioner: Any = None,
        custom_getter: Any = None,
        reuse: Any = None,
        dtype: Any = None,
        use_resource: bool | None = None,
        constraint: Any = None,
        auxiliary_name_scope: bool = True,
    ) -> None:
        if default_name is None and name_or_scope is None:
            raise TypeError("If default_name is None then name_or_scope is required")
        if reuse is False:
            reuse = None  # A scope inside a reusing one always reuses.
        if reuse not in (None, True, AUTO_REUSE):
            raise ValueError("The reuse parameter must be True or False or None.")
        if name_or_scope is not None and not isinstance(name_or_scope, (str, VariableScope)):
            raise TypeError("VariableScope: name_or_scope must be a string or VariableScope.")
        if not isinstance(auxiliary_name_scope, bool):
            raise TypeError(
                "The auxiliary_name_scope must be `True` or `False`, while get "
                f"{auxiliary_name_scope}"
            )
        if name_or_scope is None and reuse is True:
            raise ValueError("reuse=True cannot be used without a name_or_scope")
        self._name_or_scope = name_or_scope
        self._default_name = default_name
        self._values = values or []
        self._reuse = reuse
        self._auxiliary = auxiliary_name_scope
        self._defaults = {
            "initializer": initializer,
            "regularizer": regularizer,
            "caching_device": caching_device,
            "partitioner": partitioner,
            "use_resource": use_resource,
            "constraint": constraint,
            "dtype": None if dtype is None else dtypes.as_dtype(dtype),
        }
        self._custom_getter = custom_getter
        self._entered: list[tuple[contextlib.ExitStack, _State, VariableScope]] = []

    def __enter__(self) -> VariableScope:
        stack = contextlib.ExitStack()
        try:
            scope = self._enter(stack)
        except BaseException:
            stack.close()
            raise
        self._entered.append((stack, _state(), scope))
        return scope

    def __exit__(self, *exc: object) -> None:
        stack, state, scope = self._entered[-1]
        if state.current is not scope:
            raise RuntimeError("Improper nesting of variable_scope.")
        self._entered.pop()
        stack.close()

    def _enter(self, stack: contextlib.ExitStack) -> VariableScope:
        graph = _graph_of(self._values)
        if graph is not None and graph is not get_default_graph():
            stack.enter_context(graph.as_default())
        state = _state()
        given = self._name_or_scope
        if isinstance(given, VariableScope):
            # Re-entering a scope opens a new op scope of the same last name.
            if self._auxiliary and given.name:
                stack.enter_context(name_scope(given.name.split("/")[-1]))
            return self._switch(stack, state, given.name, given, None)
        if given is not None:
            full = f"{state.current.name}/{given}" if state.current.name else given
            op_scope = (
                stack.enter_context(name_scope(given)) if self._auxiliary else _current_scope()
            )
            return self._switch(stack, state, full, state.current, op_scope)
        unique = state.counts.at(state.current.name).unique(self._default_name or "")
        full = f"{state.current.name}/{unique}" if state.current.name else unique
        op_scope = (
            stack.enter_context(name_scope(self._default_name))
            if self._auxiliary
            else _current_scope()
        )
        return self._switch(stack, state, full, state.current, op_scope)

    def _switch(
        self,
        stack: contextlib.ExitStack,
        state: _State,
        full: str,
        base: VariableScope,
        op_scope: str | None,
    ) -> VariableScope:
        scope = copy.copy(base)
        scope.name = full
        if op_scope is not None:
            scope.original_name_scope = op_scope
        for key, value in self._defaults.items():
            if value is not None:
                setattr(scope, key, value)
        if self._custom_getter is not None:
            scope.custom_getter = _chained(self._custom_getter, scope.custom_getter)
        inherited = (
            state.current.reuse
            if not isinstance(self._name_or_scope, VariableScope)
            else base.reuse
        )
        scope.reuse = inherited if self._reuse is None else self._reuse
        if inherited is True or (inherited is AUTO_REUSE and self._reuse is None):
            scope.reuse = inherited if self._reuse is None else (self._reuse or inherited)
        old, state.current = state.current, scope
        counts = state.counts.at(full)
        # A scope that is opened again counts as if it had not been.
        before = counts.copy() if isinstance(self._name_or_scope, VariableScope) else None
        counts.count += 1

        def leave() -> None:
            state.current = old
            if before is None:
                counts.close()
            else:
                counts.restore(before)

        stack.callback(leave)
        return scope


def _graph_of(values: Any) -> Graph | None:
    for value in values:
        graph = graph_behind(value)
        if isinstance(graph, Graph):
            return None if get_default_graph()._may_capture(graph) else graph
    return None


def _current_scope() -> str:
    name = get_default_graph().get_name_scope()
    return name + "/" if name else ""


def _chained(new: Callable[..., Any], old: Callable[..., Any] | None) -> Callable[..., Any]:
    """A getter of an inner scope calls that of the scope around."""
    if old is None:
        return new
    outer = old

    def getter(true_getter: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        return new(functools.partial(outer, true_getter), *args, **kwargs)

    return getter


@contextlib.contextmanager
def variable_op_scope(
    values: Any, name_or_scope: Any, default_name: str | None = None, **kwargs: Any
) -> Iterator[VariableScope]:
    """`variable_scope` with TF's older argument order.

    Args:
        values: tensors of the graph.
        name_or_scope: the scope's name.
        default_name: the name where there is none.
    """
    with variable_scope(name_or_scope, default_name, values, **kwargs) as scope:
        yield scope


def no_regularizer(_: Any) -> None:
    """A regularizer that regularizes nothing, to override a scope's default."""
