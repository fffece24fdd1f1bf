"""Resource variables: a handle, with reads and writes as operations of their own."""

from __future__ import annotations

import functools
import weakref
from typing import Any, Final

from opdock import dtypes, shapes
from opdock.dtypes import DType
from opdock.graph.nodes.collections import GraphKeys
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.graph import get_default_graph
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.nodes.registry import get
from opdock.graph.nodes.scopes import (
    colocate_with,
    control_dependencies,
    device,
    graph_of,
    init_scope,
    name_scope,
)
from opdock.graph.variables.flavour import (
    Flavoured,
    VariableAggregation,
    VariableSynchronization,
)
from opdock.graph.variables.ref_variable import _safe
from opdock.graph.variables.variable import Variable, checked_shape, initial_tensor
from opdock.shapes import Shape, TensorShape


class ResourceVariable(Variable):
    """A variable behind a handle; each read sees the value at the time when it runs."""

    _dtype: DType
    _shape: Shape
    _cached_value: Tensor | None = None

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
            self._dtype = self._handle.op.attrs["dtype"]
            self._shape = self._handle.op.attrs["shape"]
            if self._snapshot.op.inputs[0] is not self._handle:
                self._cached_value, self._snapshot = self._snapshot, self._snapshot.op.inputs[0]
            return
        initial_value, from_function = self._prepare(initial_value, name)
        if constraint is not None and not callable(constraint):
            raise ValueError("The `constraint` argument must be a callable.")
        self._trainable = True if trainable is None else bool(trainable)
        self._constraint = constraint
        self._synchronization, self._aggregation = synchronization, aggregation
        with init_scope():
            with name_scope(name, "Variable", [] if from_function else [initial_value]) as scope:
                self._build(
                    scope,
                    initial_value,
                    from_function,
                    dtype,
                    caching_device,
                    shape,
                )
            if self._in_graph_mode:
                self._register(collections, self._trainable)
            elif GraphKeys.GLOBAL_STEP in (collections or ()):
                # The program's one; of others nobody knows but who made them.
                self.graph.add_to_collection(GraphKeys.GLOBAL_STEP, self)

    def _build(
        self, scope: str, initial_value: Any, from_function: bool, dtype: Any,
        caching_device: Any, shape: Any,
    ) -> None:  # fmt: skip
        graph = get_default_graph()
        true_name = scope[:-1]
        element = None if dtype is None else dtypes.as_dtype(dtype)
        attr = {"_class": [f"loc:@{true_name}"]}
        with (
            graph._attr_scope(attr if from_function else {}),
            name_scope("Initializer"),
            device(None),
        ):
            value = initial_tensor(initial_value() if from_function else initial_value, element)
        known = value.raw_shape
        if shape is not None:
            # What is given may be wider: values of other shapes are to come.
            known = checked_shape(shape, value)
        self._initial_value = value
        self._hold(scope, value.dtype.base_dtype, known)
        if graph.eager:
            get("AssignVariableOp")(self._handle, value, dtype=self._dtype)
            self._caching_device = caching_device
            return
        with name_scope("Assign") as assign_scope, colocate_with(self._handle.op):
            self._initializer_op = get("AssignVariableOp")(
                self._handle, _safe(value), dtype=self._dtype, name=assign_scope
            )
        with name_scope("Read"), colocate_with(self._handle.op):
            self._snapshot = self._read()
        if caching_device is not None:
            # The cache stands where it is asked for, whatever scopes are around.
            with colocate_with(None, ignore_existing=True), device(caching_device):
                self._cached_value = get("Identity")(self._snapshot)

    def _hold(self, scope: str, dtype: DType, shape: Shape) -> None:
        """Makes the handle."""
        graph = get_default_graph()
        self._dtype, self._shape = dtype, shape
        self._handle = get("VarHandleOp")(
            dtype=dtype, shape=shape, shared_name=graph._resource_name(scope[:-1]), name=scope
        )
        self._in_graph_mode = not graph.eager
        if graph.eager:
            self._handle.__dict__["variable"] = weakref.ref(self)
            return
        with name_scope("IsInitialized"):
            self._is_initialized_tensor = get("VarIsInitializedOp")(self._handle)

    def _read(self, name: str | None = None) -> Tensor:
        value: Tensor = get("ReadVariableOp")(self._handle, dtype=self._dtype, name=name)
        value.set_shape(self._shape)
        return value

    # ------------------------------------------------------------ facts
    @property
    def dtype(self) -> DType:
        """The element type."""
        return self._dtype

    @property
    def shape(self) -> TensorShape:
        """The static shape."""
        return TensorShape(self._shape)

    def set_shape(self, shape: Any) -> None:
        """Refines the static shape."""
        self._shape = shapes.merge(self._shape, shapes.as_shape(shape))

    @property
    def handle(self) -> Tensor:
        """The handle."""
        return self._handle

    @property
    def create(self) -> Any:
        """The initializer."""
        return self.initializer

    def _gradient_source(self) -> Tensor:
        return self._handle

    def _as_graph_element(self) -> Tensor:
        return self._snapshot if self._in_graph_mode else self.value()

    # ------------------------------------------------------------ where operations run at once
    def numpy(self) -> Any:
        """A copy of the value.

        Raises:
            NotImplementedError: the variable is of a graph.
        """
        value: Any = self.read_value()
        if not value._op.graph.eager:
            raise NotImplementedError("numpy() is only available when eager execution is enabled.")
        return value.numpy()

    @property
    def initializer(self) -> Any:
        """The operation that gives the variable its initial value; None where that has run."""
        return self._initializer_op if self._in_graph_mode else None

    @property
    def initial_value(self) -> Any:
        """The tensor of the initial value.

        Raises:
            RuntimeError: it is gone, as the variable was made when it was computed.
        """
        if not self._in_graph_mode:
            raise RuntimeError("initial_value not supported in EAGER mode.")
        return self._initial_value

    def initialized_value(self) -> Any:
        """The value if the variable is initialized, else the initial value."""
        return super().initialized_value() if self._in_graph_mode else self.read_value()

    def eval(self, session: Any = None) -> Any:
        """The value in `session` or the default session.

        Raises:
            RuntimeError: there are no sessions.
        """
        if not self._in_graph_mode:
            raise RuntimeError("Trying to eval in EAGER mode")
        return super().eval(session)

    def __bool__(self) -> bool:
        return True if self._in_graph_mode else bool(self.read_value())

    def __int__(self) -> int:
        return int(self.numpy())

    def __float__(self) -> float:
        return float(self.numpy())

    def __repr__(self) -> str:
        if self._in_graph_mode:
            return super().__repr__()
        return (
            f"<tf.Variable '{self.name}' shape={self.shape} dtype={self.dtype.name}, "
            f"numpy={self.numpy()!r}>"
        )

    @property
    def _graph_element(self) -> Tensor:  # TensorFlow's name for it, which libraries ask for
        return self._as_graph_element()

    def _initialized(self) -> Tensor:
        return self.is_initialized()

    def is_initialized(self, name: str | None = None) -> Tensor:
        """Whether the variable has a value."""
        return get("VarIsInitializedOp")(self._handle, name=name)  # type: ignore[no-any-return]

    def __deepcopy__(self, memo: Any) -> Any:
        if self._in_graph_mode:
            raise NotImplementedError(
                "__deepcopy__() is only available when eager execution is enabled."
            )
        copied = ResourceVariable(
            self.read_value(), trainable=self._trainable, constraint=self._constraint,
            dtype=self._dtype, name=f"{self._shared_name}_copy",
        )  # fmt: skip
        memo[id(self)] = copied
        return copied

    def __reduce__(self) -> Any:
        made = functools.partial(
            ResourceVariable, self.numpy(), trainable=self._trainable, name=self._shared_name,
            dtype=self._dtype, constraint=self._constraint,
        )  # fmt: skip
        return made, ()

    def to_proto(self, export_scope: str | None = None) -> Any:
        """The variable as a VariableDef; None when it is outside `export_scope`."""
        proto = super().to_proto(export_scope)
        if proto is not None and self._cached_value is not None:
            prefix = f"{export_scope.rstrip('/')}/" if export_scope else ""
            proto.snapshot_name = self._cached_value.name.removeprefix(prefix)
        return proto

    # ------------------------------------------------------------ values and updates
    def value(self) -> Tensor:
        """A read of the value, or the cached one where the variable has a caching device.

        Each call makes one, so it sees what has been written before it.
        """
        if self._cached_value is not None:
            return self._cached_value
        with colocate_with(self._handle.op, ignore_existing=True), device(None):
            return self._read()

    def read_value(self) -> Tensor:
        """A read of its own, made under the current control dependencies."""
        with name_scope("Read"):
            value = self._read()
        return get("Identity")(value)  # type: ignore[no-any-return]

    def sparse_read(self, indices: Any, name: str | None = None) -> Tensor:
        """Rows of the value, without reading the rest."""
        with name_scope("Gather" if name is None else name) as scope:
            ids = convert_to_tensor(indices)
            rows: Tensor = get("ResourceGather")(self._handle, ids, dtype=self._dtype, name=scope)
        if self._shape is not None and ids.raw_shape is not None:
            rows.set_shape((*ids.raw_shape, *self._shape[1:]))
        return get("Identity")(rows)  # type: ignore[no-any-return]

    def gather_nd(self, indices: Any, name: str | None = None) -> Tensor:
        """The slices of the value at some coordinates, without reading the rest."""
        with name_scope("GatherNd" if name is None else name) as scope:
            where = convert_to_tensor(indices)
            found: Tensor = get("ResourceGatherNd")(
                self._handle, where, dtype=self._dtype, name=scope
            )
        depth = where.raw_shape[-1] if where.raw_shape else None
        if self._shape is not None and where.raw_shape is not None and depth is not None:
            found.set_shape((*where.raw_shape[:-1], *self._shape[depth:]))
        return get("Identity")(found)  # type: ignore[no-any-return]

    def _lazy_read(self, op: Any) -> ResourceVariable:
        return self if get_default_graph().eager else UnreadVariable(self, op)

    def _update(self, op: str, value: Any, name: str | None, read_value: bool) -> Any:
        # The graph of the variable need not be the default one.
        with graph_of([self._handle]).as_default():
            tensor = convert_to_tensor(value, self._dtype, "value")
            if op == "AssignVariableOp":
                self.shape.assert_is_compatible_with(tensor.shape)
            done = get(op)(self._handle, tensor, dtype=self._dtype, name=name)
            if read_value:
                return self._lazy_read(done)
            return None if get_default_graph().eager else done

    def assign(
        self,
        value: Any,
        use_locking: bool = False,
        name: str | None = None,
        read_value: bool = True,
    ) -> Any:
        """Assigns `value`; returns the new value, or the operation."""
        return self._update("AssignVariableOp", value, name, read_value)

    def assign_add(
        self,
        delta: Any,
        use_locking: bool = False,
        name: str | None = None,
        read_value: bool = True,
    ) -> Any:
        """Adds `delta`; returns the new value, or the operation."""
        return self._update("AssignAddVariableOp", delta, name, read_value)

    def assign_sub(
        self,
        delta: Any,
        use_locking: bool = False,
        name: str | None = None,
        read_value: bool = True,
    ) -> Any:
        """Subtracts `delta`; returns the new value, or the operation."""
        return self._update("AssignSubVariableOp", delta, name, read_value)


class UninitializedVariable(ResourceVariable):
    """A variable whose first value comes from elsewhere, as from the checkpoint of a model.

    In a graph, whoever makes it gives it the operation that initializes it.

    Args:
        like: a variable of another graph whose type, shape, name and kind it has.
        collections: those that it is added to.
    """

    def __init__(self, like: ResourceVariable, collections: list[str]) -> None:
        self._trainable, self._constraint = like.trainable, like.constraint
        self._synchronization, self._aggregation = like.synchronization, like.aggregation
        self._save_slice_info = like._get_save_slice_info()
        self._initial_value = None
        with init_scope():
            with name_scope(like.op.name) as scope, device(like.device or None):
                self._hold(scope, like.dtype, like.shape.raw)
                if self._in_graph_mode:
                    with name_scope("Read"), colocate_with(self._handle.op):
                        self._snapshot = self._read()
            if self._in_graph_mode:
                self._register(collections, self._trainable)


class LateVariable(ResourceVariable):
    """A variable that a function makes of its arguments: the first call gives it its value.

    It is of programs whose operations run as they are made. The initial value is a Python function
    that gives a tensor of the function's body.
    """

    def _build(
        self, scope: str, initial_value: Any, from_function: bool, dtype: Any,
        caching_device: Any, shape: Any,
    ) -> None:  # fmt: skip
        value = initial_value()
        known = value.raw_shape if shape is None else checked_shape(shape, value)
        self._initial_value = None
        self._hold(scope, value.dtype.base_dtype, known)
        self._caching_device = caching_device


class UnreadVariable(ResourceVariable):
    """What an update returns: the variable, every use of which comes after the update.

    Whoever only waits for it does not read the value.

    Args:
        variable: what was updated.
        update: the operation.
    """

    def __init__(self, variable: ResourceVariable, update: Operation) -> None:
        self.__dict__.update(variable.__dict__)
        self.__dict__.pop("_distributed_container", None)  # it is more than a copy: it waits
        self._cached_value = None
        self._update_op = update
        with control_dependencies([update]):
            self._snapshot = variable._read()

    @property
    def op(self) -> Operation:
        """The update."""
        return self._update_op

    @property
    def name(self) -> str:
        """The name of the update."""
        return self._update_op.name

    def value(self) -> Tensor:
        """The value after the update."""
        with control_dependencies([self._update_op]):
            return super().value()

    def read_value(self) -> Tensor:
        """The value after the update."""
        with control_dependencies([self._update_op]):
            return super().read_value()

    def sparse_read(self, indices: Any, name: str | None = None) -> Tensor:
        """Rows of the value after the update."""
        with control_dependencies([self._update_op]):
            return super().sparse_read(indices, name)

    def gather_nd(self, indices: Any, name: str | None = None) -> Tensor:
        """Slices of the value after the update."""
        with control_dependencies([self._update_op]):
            return super().gather_nd(indices, name)

    def _update(self, op: str, value: Any, name: str | None, read_value: bool) -> Any:
        with control_dependencies([self._update_op]):
            return super()._update(op, value, name, read_value)


# The arguments of `tf.compat.v2.Variable`, in its order.
_V2_ARGUMENTS: Final = (
    "initial_value", "trainable", "validate_shape", "caching_device", "name", "variable_def",
    "dtype", "import_scope", "constraint", "synchronization", "aggregation", "shape",
)  # fmt: skip


class _AnyVariable(Flavoured, type):
    """Every variable is a `tf.compat.v2.Variable`: in TF it is the base of `tf.Variable`."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if cls is not VariableV2:
            return super().__call__(*args, **kwargs)
        if len(args) > len(_V2_ARGUMENTS):
            raise TypeError(f"tf.Variable takes {len(_V2_ARGUMENTS)} arguments, got {len(args)}")
        given = dict(zip(_V2_ARGUMENTS, args, strict=False))
        return Variable(**given, **kwargs, use_resource=True)

    def __instancecheck__(cls, instance: object) -> bool:
        if cls is VariableV2:
            return isinstance(instance, Variable)
        return super().__instancecheck__(instance)

    def __subclasscheck__(cls, subclass: type) -> bool:
        if cls is VariableV2:
            return issubclass(subclass, Variable)
        return super().__subclasscheck__(subclass)


class VariableV2(ResourceVariable, metaclass=_AnyVariable):
    """`tf.compat.v2.Variable`: makes resource variables, and all variables are instances of it.

    What is derived from it inherits how a resource variable works.
    """
