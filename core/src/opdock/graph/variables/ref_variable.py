"""Reference variables: `VariableV2` nodes, TF 1's default."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from typing import Any

from opdock import dtypes
from opdock.dtypes import DType
from opdock.graph.nodes.collections import GraphKeys
from opdock.graph.nodes.graph import get_default_graph
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.nodes.registry import get
from opdock.graph.nodes.scopes import colocate_with, device, init_scope, name_scope
from opdock.graph.variables.flavour import VariableAggregation, VariableSynchronization
from opdock.graph.variables.variable import Variable, checked_shape, initial_tensor
from opdock.shapes import TensorShape


class RefVariable(Variable):
    """A variable whose output is a reference to its storage; see `tf.Variable`."""

    def __init__(
        self,
        initial_value: Any = None,
        trainable: Any = None,
        collections: Any = None,
        validate_shape: bool = True,
        caching_device: Any = None,
        name: str | None = None,
        variable_def: Any = None,
        dtype: Any = None,
        expected_shape: Any = None,
        import_scope: str | None = None,
        constraint: Any = None,
        synchronization: Any = VariableSynchronization.AUTO,
        aggregation: Any = VariableAggregation.NONE,
        shape: Any = None,
    ) -> None:
        if variable_def is not None:
            if initial_value is not None:
                raise ValueError("variable_def and initial_value are mutually exclusive.")
            self._restore_from(variable_def, import_scope)
            return
        initial_value, from_function = self._prepare(initial_value, name)
        if constraint is not None and not callable(constraint):
            raise ValueError("The `constraint` argument must be a callable.")
        # Anything that is given for `trainable` counts by its truth: `tf.Variable(v, tf.float32)`
        # is a trainable variable.
        self._trainable = True if trainable is None else bool(trainable)
        self._constraint = constraint
        self._synchronization, self._aggregation = synchronization, aggregation
        with init_scope():
            values = [] if from_function else [initial_value]
            with name_scope(name, "Variable", values) as scope:
                self._build(
                    scope,
                    initial_value,
                    from_function,
                    dtype,
                    validate_shape,
                    caching_device,
                    shape,
                )
            self._register(collections, self._trainable)

    def _build(
        self, scope: str, initial_value: Any, from_function: bool, dtype: Any,
        validate_shape: bool, caching_device: Any, shape: Any,
    ) -> None:  # fmt: skip
        graph = get_default_graph()
        true_name = scope[:-1]
        element = None if dtype is None else dtypes.as_dtype(dtype)
        if from_function:
            attr = {"_class": [f"loc:@{true_name}"]}
            with graph._attr_scope(attr), name_scope("Initializer"), device(None):
                value = initial_tensor(initial_value(), element)
        else:
            value = initial_tensor(initial_value, element)
        known = value.raw_shape
        if validate_shape and (known is None or None in known):
            raise ValueError(f"initial_value must have a shape specified: {value}")
        if shape is not None:
            # What is given may be wider: values of other shapes are to come.
            known = checked_shape(shape, value)
        elif not validate_shape:
            known = None
        self._initial_value = value
        self._handle = get("VariableV2")(shape=known, dtype=value.dtype.base_dtype, name=scope)
        with colocate_with(self._handle.op):
            assigned = get("Assign")(self._handle, _safe(value), validate_shape=validate_shape)
            self._initializer_op = assigned.op
        with contextlib.ExitStack() as stack:
            if caching_device is not None:
                stack.enter_context(device(caching_device))
            else:
                stack.enter_context(colocate_with(self._handle.op))
            self._snapshot = get("Identity")(self._handle, name="read")

    # ------------------------------------------------------------ facts
    @property
    def dtype(self) -> DType:
        """The element type, e.g. `tf.float32_ref`."""
        return self._handle.dtype

    @property
    def shape(self) -> TensorShape:
        """The static shape."""
        return self._handle.shape

    def _ref(self) -> Tensor:
        return self._handle

    def _gradient_source(self) -> Tensor:
        # Every read counts, not only the one that operators use.
        return self._handle

    def _as_graph_element(self) -> Tensor:
        return self._handle

    def _initialized(self) -> Tensor:
        return get("IsVariableInitialized")(self)  # type: ignore[no-any-return]

    # ------------------------------------------------------------ values and updates
    def read_value(self) -> Tensor:
        """A read of its own, made under the current control dependencies."""
        return get("Identity")(self._handle, name="read")  # type: ignore[no-any-return]

    def is_initialized(self, name: str | None = None) -> Tensor:
        """Whether the variable has a value."""
        return get("IsVariableInitialized")(self, name=name)  # type: ignore[no-any-return]

    def assign(
        self,
        value: Any,
        use_locking: bool = False,
        name: str | None = None,
        read_value: bool = True,
    ) -> Any:
        """Assigns `value`; returns the variable as a reference, or the operation."""
        done = get("Assign")(self, value, use_locking=use_locking, name=name)
        return done if read_value else done.op

    def assign_add(
        self,
        delta: Any,
        use_locking: bool = False,
        name: str | None = None,
        read_value: bool = True,
    ) -> Any:
        """Adds `delta`; returns the variable as a reference, or the operation."""
        done = get("AssignAdd")(self, delta, use_locking=use_locking, name=name)
        return done if read_value else done.op

    def assign_sub(
        self,
        delta: Any,
        use_locking: bool = False,
        name: str | None = None,
        read_value: bool = True,
    ) -> Any:
        """Subtracts `delta`; returns the variable as a reference, or the operation."""
        done = get("AssignSub")(self, delta, use_locking=use_locking, name=name)
        return done if read_value else done.op


def _safe(value: Tensor) -> Tensor:
    """The initial value with uninitialized variables in it replaced by their initial values.

    A variable made from another one must not depend on the order of initialization.
    """
    seen: dict[Tensor, Tensor] = {}

    @functools.cache
    def variables() -> dict[Operation, Any]:
        # Most values come from no variable, and all variables are many.
        return {v._handle.op: v for v in value.graph.get_collection(GraphKeys.GLOBAL_VARIABLES)}

    return _substitute(value, variables, seen, 0)


def _substitute(
    tensor: Tensor, variables: Callable[[], dict[Operation, Any]], seen: dict[Tensor, Tensor],
    depth: int,
) -> Tensor:  # fmt: skip
    if tensor in seen or depth > 16:
        return seen.get(tensor, tensor)
    op = tensor.op
    if op.type in ("IsVariableInitialized", "VarIsInitializedOp", "ReadVariableOp", "If", "While"):
        return tensor
    source = op.inputs[0].op if op.type == "Identity" and op.inputs else op
    found = variables().get(source) if source.type in ("VariableV2", "Variable") else None
    if found is not None and found._initial_value is not None:
        out: Tensor = found.initialized_value()
    else:
        fresh = [_substitute(t, variables, seen, depth + 1) for t in op.inputs]
        out = tensor
        if any(a is not b for a, b in zip(fresh, op.inputs, strict=True)):
            graph = op.graph
            name = graph.unique_name(op.name.rsplit("/", 1)[-1] + "_safe")
            copy = graph._create_op(
                op.spec, name, fresh, dict(op.attrs), [t.dtype for t in op.outputs]
            )
            out = copy.outputs[tensor.value_index]
    seen[tensor] = out
    return out
