"""The base of all layers: names, variables, and what a call leaves in the graph's collections."""

from __future__ import annotations

import copy
import inspect
import numbers
import re
from collections.abc import Callable
from typing import Any, Final, Self

import numpy as np

from opdock import dtypes, shapes
from opdock.dtypes import DType
from opdock.graph.nodes.collections import GraphKeys
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.graph import Graph, get_default_graph
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.nodes.scopes import executing_eagerly, name_scope
from opdock.graph.variables.flavour import VariableSynchronization
from opdock.graph.variables.trackable import Trackable, Weighted
from opdock.graph.variables.variable import Variable
from opdock.graph.variables.variable_scope import VariableScope, get_variable, variable_scope
from opdock.layers import named
from opdock.layers.spec import check_inputs
from opdock.layers.surface import KerasSurface
from opdock.ops.array import shape
from opdock.ops.cast import cast
from opdock.util import nest
from opdock.util.module import Module

_OF_A_GRAPH: Final = (Graph, Tensor, Operation, Variable, VariableScope)


def snake_case(name: str) -> str:
    """A class name as a scope name: "MaxPooling2D" becomes "max_pooling2d"."""
    split = re.sub(r"(.)([A-Z][a-z0-9]+)", r"\1_\2", name)
    snake = re.sub(r"([a-z])([A-Z])", r"\1_\2", split).lower()
    return snake if not snake.startswith("_") else "private" + snake


def _numbered(base: str) -> str:
    """Layer names count from 1 per graph, unlike scope names, which start without a number."""
    counts = get_default_graph()._scoped_state.setdefault("layer_names", {})
    counts[base] = counts.get(base, 0) + 1
    return f"{base}_{counts[base]}"


class Layer(Weighted, KerasSurface, Module):
    """A function with variables: made once, called as often as wanted.

    Subclasses make their variables in `build` (through `add_weight`) and their ops in `call`.
    Layers in its attributes are its `submodules`, whose variables are their own: as in TF, the
    weights of a layer are what it made itself.

    Args:
        trainable: whether optimizers update the variables.
        name: the name and variable scope; by default the class's, made unique.
        dtype: the type of the variables; by default that of the first input.
        **kwargs: `activity_regularizer`; and `_scope` and `_reuse`, by which the functional
            interface shares variables.

    Attributes:
        built: whether the variables exist.
        input_spec: what inputs must look like, an InputSpec or a list of them.
        activity_regularizer: a function from the output to a loss.
    """

    def __init__(
        self, trainable: bool = True, name: Any = None, dtype: Any = None, **kwargs: Any
    ) -> None:
        scope = kwargs.pop("_scope", None)
        self._reuse = kwargs.pop("_reuse", None)
        self.activity_regularizer: Callable[[Any], Any] | None = named.regularizer(
            kwargs.pop("activity_regularizer", None)
        )
        if kwargs:
            raise TypeError(f"Keyword argument not understood: {min(kwargs)!r}")
        self.trainable = trainable
        self.built = False
        self.stateful = False
        self.input_spec: Any = None
        self._dtype: DType | None = None if dtype is None else dtypes.as_dtype(dtype)
        self._trainable_weights: list[Any] = []
        self._non_trainable_weights: list[Any] = []
        self._losses: list[Tensor] = []
        self._made_losses: list[Callable[[], Any]] = []  # of weights that change at once
        self._updates: list[Any] = []
        self._conditional: set[Any] = set()
        # Layers of contrib put their updates elsewhere, or run them at once.
        self._updates_collection: str | None = GraphKeys.UPDATE_OPS
        self._graph: Graph | None = None
        self._base_name = (name.name if isinstance(name, VariableScope) else name) or snake_case(
            type(self).__name__
        )
        self._name: str = (
            name if isinstance(name, str) and name else _numbered(snake_case(type(self).__name__))
        )
        self._call_has_scope_arg = "scope" in inspect.signature(self.call).parameters
        self._scope: VariableScope | None = None
        self._current_scope: VariableScope | None = None
        if scope:
            with variable_scope(scope) as captured:
                self._scope = captured

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """A layer with the same graph, scope, variables and tensors, and copies of all else."""
        made = type(self).__new__(type(self))
        memo[id(self)] = made
        for value in vars(self).values():
            held = value.values() if isinstance(value, dict) else value
            several = isinstance(value, (dict, list, tuple, set, frozenset))
            inside = list(held) if several else [value]
            memo.update((id(v), v) for v in inside if isinstance(v, _OF_A_GRAPH))
        vars(made).update((name, copy.deepcopy(v, memo)) for name, v in vars(self).items())
        return made

    def __setattr__(self, name: str, value: Any) -> None:
        # What depends on the layer in checkpoints is told by `add_weight`, not by attributes.
        object.__setattr__(self, name, value)

    # ------------------------------------------------------------ facts
    @property
    def name(self) -> str:
        """The layer's own name."""
        return self._name

    @property
    def dtype(self) -> DType | None:
        """The type of the variables; None until it is known."""
        return self._dtype

    @property
    def graph(self) -> Graph | None:
        """The graph of the first call."""
        return self._graph

    @property
    def scope_name(self) -> str:
        """The name of the variable scope.

        Raises:
            ValueError: the layer has not been called.
        """
        if self._scope is None:
            raise ValueError(
                f'No name available for layer scope because the layer "{self._name}" has not been '
                "used yet. The scope name is determined the first time the layer instance is "
                "called. You must therefore call the layer before querying `scope_name`."
            )
        return self._scope.name

    @property
    def trainable_weights(self) -> list[Any]:
        """The variables that optimizers update; none when the layer is not trainable."""
        return list(self._trainable_weights) if self.trainable else []

    @property
    def non_trainable_weights(self) -> list[Any]:
        """The variables that optimizers do not update."""
        if self.trainable:
            return list(self._non_trainable_weights)
        return [*self._trainable_weights, *self._non_trainable_weights]

    @property
    def losses(self) -> list[Tensor]:
        """The losses of the regularizers, and what `add_loss` added."""
        return [*self._losses, *(make() for make in self._made_losses)]

    @property
    def updates(self) -> list[Any]:
        """The operations to run beside a training step; none when the layer is frozen."""
        if not self.trainable and not self.stateful:
            return []
        return list(self._updates)

    def count_params(self) -> int:
        """The number of scalars in the variables.

        Raises:
            ValueError: the layer has no variables yet.
        """
        if not self.built:
            raise ValueError(
                f"You tried to call `count_params` on {self.name}, but the layer isn't built. You "
                f"can build it manually via: `{self.name}.build(batch_input_shape)`."
            )
        return sum(int(np.prod(v.shape.as_list())) for v in self.weights)

    # ------------------------------------------------------------ for subclasses
    def build(self, input_shape: Any) -> None:
        """Makes the variables, given the shapes of the inputs."""
        self.built = True

    def call(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """Makes the ops."""
        return inputs

    def compute_output_shape(self, input_shape: Any) -> Any:
        """The static shape of the output for that of the input.

        Raises:
            NotImplementedError: the layer does not say.
        """
        raise NotImplementedError(f"{type(self).__name__} does not infer output shapes.")

    def add_loss(self, losses: Any, inputs: Any = None) -> None:
        """Adds losses to the layer and to the collection REGULARIZATION_LOSSES."""
        for loss in nest.flatten(losses):
            value = loss() if callable(loss) else loss
            if value is None:
                continue
            value = convert_to_tensor(value)
            self._losses.append(value)
            if inputs is not None:
                self._conditional.add(value)
            if not executing_eagerly():
                _collect(GraphKeys.REGULARIZATION_LOSSES, value)

    def add_update(self, updates: Any, inputs: Any = None) -> None:
        """Adds operations that a training step should run; they go to UPDATE_OPS."""
        for update in nest.flatten(updates):
            made = update() if callable(update) else update
            if made is not None and not executing_eagerly():
                self._updates.append(made)
                if inputs is not None:
                    self._conditional.add(made)

    def get_losses_for(self, inputs: Any) -> list[Tensor]:
        """The losses that depend on `inputs`; for None, those that depend on no input."""
        return self._for_inputs(self.losses, inputs)

    def get_updates_for(self, inputs: Any) -> list[Any]:
        """The updates that depend on `inputs`; for None, those that depend on no input."""
        return self._for_inputs(self.updates, inputs)

    def _for_inputs(self, items: list[Any], inputs: Any) -> list[Any]:
        if inputs is None:
            return [i for i in items if i not in self._conditional]
        sources = {t.op for t in nest.flatten(inputs)}
        return [i for i in items if i in self._conditional and sources & _ancestors(i)]

    def add_weight(
        self, name: str, shape: Any, dtype: Any = None, initializer: Any = None,
        regularizer: Any = None, trainable: bool | None = None,
        constraint: Any = None, use_resource: bool | None = None,
        synchronization: Any = VariableSynchronization.AUTO, aggregation: Any = None,
        partitioner: Any = None, **kwargs: Any,
    ) -> Any:  # fmt: skip
        """A variable of the layer, made or shared by `tf.get_variable`.

        Args:
            name: the name below the layer's scope.
            shape: its shape.
            dtype: its type; the layer's by default.
            initializer: its initializer, or its name; the scope's by default, then glorot uniform.
            regularizer: a function from the variable to a loss, or its name.
            trainable: whether optimizers update it.
            constraint: applied after each update; a function or its name.
            use_resource: whether to make a resource variable.
            synchronization, aggregation: for variables with copies.
            partitioner: splits the variable.
            **kwargs: more arguments of `tf.get_variable`.

        Raises:
            ValueError: the scope forbids the variable, `trainable` contradicts
                `synchronization`, or there is nothing of a name that was given.
        """
        if synchronization is VariableSynchronization.ON_READ:
            if trainable:
                raise ValueError(
                    "Synchronization value can be set to VariableSynchronization.ON_READ only for "
                    "non-trainable variables. You have specified trainable=True and "
                    "synchronization=VariableSynchronization.ON_READ."
                )
            trainable = False
        wanted = (True if trainable is None else trainable) and self.trainable
        initializer, regularizer = named.initializer(initializer), named.regularizer(regularizer)
        graph = get_default_graph()
        known = graph._collection_size(GraphKeys.GLOBAL_VARIABLES)
        self._set_scope(None)
        reuse = self.built or self._reuse
        with variable_scope(self._scope, reuse=reuse, auxiliary_name_scope=False) as scope:
            self._current_scope = scope
            with name_scope(scope.original_name_scope):
                variable = get_variable(
                    name, shape=shape, dtype=dtypes.as_dtype(dtype or self._dtype or "float32"),
                    initializer=initializer, trainable=wanted,
                    constraint=named.constraint(constraint),
                    use_resource=use_resource, partitioner=partitioner,
                    synchronization=synchronization, aggregation=aggregation, **kwargs,
                )  # fmt: skip
                parts = list(variable) if _partitioned(variable) else [variable]
                places = (graph._collection_index(GraphKeys.GLOBAL_VARIABLES, p) for p in parts)
                # Those that others made have been regularized.
                if regularizer is not None and not any(0 <= i < known for i in places):
                    for part in parts:
                        self._regularize(name, part, regularizer)
        self._note_weight(variable, wanted)
        if isinstance(variable, Trackable):
            self._track_trackable(variable, name, overwrite=True)
        return variable

    def _call_getter(self) -> Callable[..., Any] | None:
        """What sees the variables that `call` gets from `tf.get_variable`; layers look at none."""
        return None

    def _note_weight(self, variable: Any, trainable: bool) -> None:
        graph = get_default_graph()
        for part in list(variable) if _partitioned(variable) else [variable]:
            # A custom getter may have overruled what was wanted.
            trained = trainable and (
                part.trainable if part.graph.eager
                else graph._collection_index(GraphKeys.TRAINABLE_VARIABLES, part) >= 0
            )  # fmt: skip
            listed = self._trainable_weights if trained else self._non_trainable_weights
            if not any(part is known for known in listed):
                listed.append(part)

    add_variable = add_weight

    def _regularize(self, name: str, variable: Any, regularizer: Callable[[Any], Any]) -> None:
        if variable.graph.eager:
            self._made_losses.append(lambda: regularizer(variable))
            return
        # A variable made in the body of a loop lives outside of it, and so does its loss.
        outside = variable.graph is not get_default_graph()
        scope = f"{variable.op.name}/Regularizer/" if outside else f"{name}/Regularizer"
        with variable.graph.as_default(), name_scope(scope):
            loss = regularizer(variable)
        if loss is not None:
            self.add_loss(loss)

    # ------------------------------------------------------------ calling
    def _set_scope(self, scope: Any) -> None:
        if self._scope is not None:
            return
        if self._reuse:
            opened = variable_scope(scope if scope is not None else self._base_name)
        else:
            opened = variable_scope(scope, default_name=self._base_name)
        with opened as captured:
            self._scope = captured

    def __call__(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """Makes the ops for `inputs`, and at the first call the variables.

        Args:
            inputs: a tensor or a structure of tensors.
            *args, **kwargs: for `call`; `scope` names the variable scope at the first call.

        Raises:
            ValueError: the inputs do not fit the layer, or the scope forbids its variables.
        """
        self._set_scope(kwargs.pop("scope", None))
        reuse = True if self.built else self._reuse
        with variable_scope(
            self._scope,
            reuse=reuse,
            auxiliary_name_scope=False,
            custom_getter=self._call_getter(),
        ) as scope:
            self._current_scope = scope
            if self._call_has_scope_arg:
                kwargs["scope"] = scope
            outputs = self._run(inputs, scope.original_name_scope, args, kwargs)
        if self._updates_collection is not None:
            for update in self.updates:
                _collect(self._updates_collection, update)
        return outputs

    def apply(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """The same as calling the layer."""
        return self(inputs, *args, **kwargs)

    def _run(self, inputs: Any, scope: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        self._graph = self._graph or get_default_graph()
        if executing_eagerly():
            self._losses.clear()  # of the last call
        inputs = nest.map_structure(_as_tensor, inputs)
        flat = nest.flatten(inputs)
        check_inputs(self.input_spec, flat, self.name)
        with name_scope(scope):
            if not self.built:
                if flat and self._dtype is None and hasattr(flat[0], "dtype"):
                    self._dtype = flat[0].dtype.base_dtype
                # What is no tensor yet, such as a list of strings, has no shape to tell.
                told = all(hasattr(t, "shape") for t in flat)
                self.build(nest.map_structure(lambda t: t.shape, inputs) if told else None)
                self.built = True
                check_inputs(self.input_spec, flat, self.name)
            outputs = self.call(inputs, *args, **kwargs)
            if outputs is None:
                raise ValueError(
                    f"A layer's `call` method should return a Tensor or a list of Tensors, not "
                    f"None (layer: {self.name})."
                )
            if self.activity_regularizer is not None:
                self._regularize_activity(inputs, nest.flatten(outputs))
        return outputs

    def _regularize_activity(self, inputs: Any, outputs: list[Tensor]) -> None:
        assert self.activity_regularizer is not None
        with name_scope("ActivityRegularizer"):
            for output in outputs:
                loss = self.activity_regularizer(output)
                if loss is not None:
                    # Per example, so that the batch size does not change the strength.
                    self.add_loss(loss / cast(shape(output)[0], loss.dtype), inputs=inputs)


def _as_tensor(value: Any) -> Any:
    if isinstance(value, (np.ndarray, numbers.Number)) or hasattr(value, "initializer"):
        return convert_to_tensor(value)
    return value


def _partitioned(variable: Any) -> bool:
    return hasattr(variable, "_get_variable_list")


def _collect(key: str, item: Any) -> None:
    held = get_default_graph().get_collection_ref(key)
    if id(item) not in map(id, held):
        held.append(item)


def _ancestors(item: Any) -> set[Operation]:
    first = item if isinstance(item, Operation) else item.op
    seen, stack = {first}, [first]
    while stack:
        op = stack.pop()
        for other in [t.op for t in op.inputs] + list(op.control_inputs):
            if other not in seen:
                seen.add(other)
                stack.append(other)
    return seen


def applied(layer: Callable[..., Layer], inputs: Any, name: Any = None, **given: Any) -> Tensor:
    """What a new layer makes of `inputs`: the function that goes with the layer's class.

    Args:
        layer: the class.
        inputs: what it is applied to.
        name: the layer's name, and that of its scope where variables can be shared.
        given: the function's other arguments by name: `training` is for the call, the rest for the
            class.
    """
    call = {k: given.pop(k) for k in ("training",) if k in given}
    if "reuse" in given:
        given.update(_scope=name, _reuse=given.pop("reuse"))
    return layer(name=name, **given)(inputs, **call)  # type: ignore[no-any-return]


def static(shape: Any) -> list[int | None]:
    """A TensorShape or shape-like of known rank as a list."""
    raw = shapes.as_shape(shape)
    if raw is None:
        raise ValueError("The layer needs an input of known rank, but its rank is unknown.")
    return list(raw)
