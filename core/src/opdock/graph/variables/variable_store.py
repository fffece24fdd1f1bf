"""The variables of a graph by name: what `get_variable` makes and shares."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from opdock import dtypes, shapes
from opdock.dtypes import DType
from opdock.graph.nodes.collections import GraphKeys
from opdock.graph.nodes.graph import get_default_graph
from opdock.graph.nodes.scopes import colocate_with, name_scope
from opdock.graph.variables import initializers
from opdock.graph.variables.flavour import VariableAggregation, VariableSynchronization
from opdock.graph.variables.partitioned import get_partitioned
from opdock.graph.variables.variable import Variable
from opdock.shapes import Shape


class VariableStore:
    """Variables by full name.

    Attributes:
        keeps: whether variables are found again that are made while operations run at once; else
            whoever makes one has it alone.
    """

    keeps = False

    def __init__(self) -> None:
        self._vars: dict[str, Any] = {}
        self._partitioned_vars: dict[str, Any] = {}

    def get_variable(
        self,
        name: str,
        shape: Any = None,
        dtype: Any = None,
        initializer: Any = None,
        regularizer: Any = None,
        reuse: Any = None,
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
        """The variable `name`, made or shared as `reuse` says; see `tf.get_variable`."""
        synchronization = synchronization or VariableSynchronization.AUTO
        aggregation = aggregation or VariableAggregation.NONE
        if custom_getter is not None and not callable(custom_getter):
            raise ValueError(f"Passed a custom_getter which is not callable: {custom_getter}")
        kwargs: dict[str, Any] = {
            "shape": shape,
            "dtype": dtype,
            "initializer": initializer,
            "regularizer": regularizer,
            "reuse": reuse,
            "trainable": (
                synchronization is not VariableSynchronization.ON_READ
                if trainable is None
                else trainable
            ),
            "collections": collections,
            "caching_device": caching_device,
            "partitioner": partitioner,
            "validate_shape": validate_shape,
            "use_resource": use_resource,
            "constraint": constraint,
            "synchronization": synchronization,
            "aggregation": aggregation,
        }
        if custom_getter is None:
            return self._true_getter(name, **kwargs)
        parameters = inspect.signature(custom_getter).parameters
        if not any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values()):
            kwargs = {k: v for k, v in kwargs.items() if k in parameters}
        return (
            custom_getter(getter=self._true_getter, name=name, **kwargs)
            if "getter" in parameters
            else custom_getter(self._true_getter, name, **kwargs)
        )

    def _true_getter(
        self,
        name: str,
        shape: Any = None,
        dtype: Any = dtypes.float32,
        initializer: Any = None,
        regularizer: Any = None,
        reuse: Any = None,
        trainable: bool | None = True,
        collections: Any = None,
        caching_device: Any = None,
        partitioner: Any = None,
        validate_shape: bool = True,
        use_resource: bool | None = None,
        constraint: Any = None,
        synchronization: Any = None,
        aggregation: Any = None,
        **unused: Any,
    ) -> Any:
        element = None if dtype is None else dtypes.as_dtype(dtype).base_dtype
        raw = None if shape is None else shapes.as_shape(shape)
        # Sharing a partitioned variable needs no partitioner.
        if partitioner is not None or (reuse is True and name in self._partitioned_vars):
            parts = get_partitioned(
                self,
                name,
                raw,
                element,
                initializer,
                partitioner,
                reuse,
                {
                    "regularizer": regularizer,
                    "trainable": trainable,
                    "collections": collections,
                    "caching_device": caching_device,
                    "validate_shape": validate_shape,
                    "use_resource": use_resource,
                    "constraint": constraint,
                },
            )
            if parts is not None:
                return parts
        if f"{name}/part_0" in self._vars:
            raise ValueError(
                "No partitioner was provided, but a partitioned version of the variable was found: "
                f"{name}/part_0. Perhaps a variable of the same name was already created with "
                "partitioning?"
            )
        found = self._vars.get(name)
        if get_default_graph().eager:
            if self.keeps:
                reuse = None  # made or shared
            elif reuse:
                raise RuntimeError(
                    "When eager execution is enabled variable reuse is only supported when an "
                    "EagerVariableStore is active."
                )
        if found is not None:
            return self._shared(name, found, raw, shape is not None, element, reuse)
        if reuse is True:
            raise ValueError(
                f"Variable {name} does not exist, or was not created with tf.get_variable(). Did "
                "you mean to set reuse=tf.AUTO_REUSE in VarScope?"
            )
        made = self._make(
            name,
            raw,
            shape is not None,
            element,
            initializer,
            validate_shape,
            {
                "trainable": trainable,
                "collections": collections,
                "caching_device": caching_device,
                "use_resource": use_resource,
                "constraint": constraint,
                **({"synchronization": synchronization} if synchronization is not None else {}),
                **({"aggregation": aggregation} if aggregation is not None else {}),
            },
        )
        eager = get_default_graph().eager
        if self.keeps or not eager:
            self._vars[name] = made
        if self.keeps and eager:
            _collect(made, collections)
        if regularizer:
            _regularize(made, name, regularizer)
        return made

    def _shared(
        self, name: str, found: Any, raw: Shape, given: bool, dtype: DType | None, reuse: Any
    ) -> Any:
        if reuse is False:
            where = found.op.user_line
            raise ValueError(
                f"Variable {name} already exists, disallowed. Did you mean to set reuse=True or "
                f"reuse=tf.AUTO_REUSE in VarScope? Originally defined at:\n  {where}"
            )
        if given and not shapes.is_compatible(raw, found.shape.raw):
            raise ValueError(
                f"Trying to share variable {name}, but specified shape {shapes.TensorShape(raw)} "
                f"and found shape {found.shape}."
            )
        if dtype is not None and dtype is not found.dtype.base_dtype:
            raise ValueError(
                f"Trying to share variable {name}, but specified dtype {dtype.name} and found "
                f"dtype {found.dtype.name}."
            )
        return found

    def _make(
        self,
        name: str,
        raw: Shape,
        given: bool,
        dtype: DType | None,
        initializer: Any,
        validate_shape: bool,
        kwargs: dict[str, Any],
    ) -> Any:
        element = dtype or dtypes.float32
        constant = initializer is not None and not callable(initializer)
        if initializer is None:
            initializer = default_initializer(name, element)
        if given and constant:
            raise ValueError("If initializer is a constant, do not specify shape.")
        if inspect.isclass(initializer):
            initializer = initializer()
        value: Any = initializer
        if not constant:
            if given and (raw is None or None in raw):
                raise ValueError(
                    f"Shape of a new variable ({name}) must be fully defined, but instead was "
                    f"{shapes.TensorShape(raw)}."
                )
            if not given and _wants_shape(_parameters(initializer)):
                raise ValueError(
                    "The initializer passed is not valid. It should be a callable with no "
                    "arguments and the shape should not be provided or an instance of "
                    "`tf.keras.initializers.*' and `shape` should be fully defined. "
                    f"Variable {name}, initializer {initializer!r}."
                )
            value = _maker(initializer, raw, element, given)
        # What is asked for no shape says by itself of what type it is.
        own_type = constant or not given
        return Variable(
            value, name=name, dtype=None if own_type else element, validate_shape=validate_shape,
            **kwargs,
        )  # fmt: skip


def default_initializer(name: str, dtype: DType) -> Any:
    """What fills a variable for which nobody says what; ValueError for a type without a default."""
    if dtype.is_floating:
        return initializers.glorot_uniform_initializer()
    if dtype.is_integer or dtype.is_unsigned or dtype.is_bool or dtype is dtypes.string:
        return initializers.zeros_initializer()
    raise ValueError(f"An initializer for variable {name} of {dtype.name} is required")


def _parameters(initializer: Any) -> Mapping[str, inspect.Parameter]:
    """What a callable takes; nothing where Python cannot tell."""
    if isinstance(initializer, initializers.Initializer):
        return _parameters_of(type(initializer).__call__)
    try:
        return inspect.signature(initializer).parameters
    except (TypeError, ValueError):
        return {}


@functools.cache
def _parameters_of(method: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    """What a method takes beside its object: models have many initializers of few classes."""
    _, *parameters = inspect.signature(method).parameters.values()
    return {p.name: p for p in parameters}


def _wants_shape(parameters: Mapping[str, inspect.Parameter]) -> bool:
    return any(
        p.default is inspect.Parameter.empty
        and p.kind in (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        for p in parameters.values()
    )


def _maker(initializer: Any, raw: Shape, dtype: DType, given: bool) -> Callable[[], Any]:
    parameters = _parameters(initializer)
    wants_shape = _wants_shape(parameters)
    if not wants_shape and not given:
        return initializer  # type: ignore[no-any-return]
    kwargs: dict[str, Any] = {}
    takes_any = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values())
    if "dtype" in parameters or takes_any:
        kwargs["dtype"] = dtype
    if "partition_info" in parameters:
        kwargs["partition_info"] = None
    if not wants_shape and "shape" not in parameters:
        return lambda: initializer(**kwargs)
    return lambda: initializer(list(raw) if raw is not None else None, **kwargs)


def _collect(variable: Any, collections: Any) -> None:
    """Puts a variable that is kept into collections, as graphs do with all."""
    graph = get_default_graph()
    graph.add_to_collections(collections or GraphKeys.GLOBAL_VARIABLES, variable)
    if variable.trainable:
        graph.add_to_collection(GraphKeys.TRAINABLE_VARIABLES, variable)


def _regularize(variable: Any, name: str, regularizer: Callable[[Any], Any]) -> None:
    # A variable made in the body of a loop lives outside of it, and so does its loss.
    with (
        variable.graph.as_default(),
        colocate_with(variable.op),
        name_scope(name + "/Regularizer/"),
    ):
        loss = regularizer(variable)
    if loss is not None:
        get_default_graph().add_to_collection(GraphKeys.REGULARIZATION_LOSSES, loss)
