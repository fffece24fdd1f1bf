"""`tf.Variable`: what reference and resource variables share, and the choice between them."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

from opdock import dtypes, shapes
from opdock.dtypes import DType
from opdock.graph.nodes.collections import GraphKeys
from opdock.graph.nodes.convert import convert_to_tensor, register_tensor_conversion_function
from opdock.graph.nodes.graph import Graph, get_default_graph
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.nodes.reference import Referable
from opdock.graph.nodes.scopes import name_scope
from opdock.graph.variables.flavour import (
    Flavoured,
    VariableAggregation,
    VariableSynchronization,
    variable_class,
)
from opdock.graph.variables.scattered import Scattered
from opdock.graph.variables.trackable import TrackableVariable
from opdock.shapes import Shape, TensorShape

__all__ = ["Variable"]

_numbers: Final = itertools.count(1)


class Variable(TrackableVariable, Referable, Scattered, metaclass=Flavoured):
    """A tensor that keeps its value between runs of a session.

    Args:
        initial_value: the initial value, or a function without arguments that makes it.
        trainable: whether optimizers update it by default.
        collections: collections to add it to; `GraphKeys.GLOBAL_VARIABLES` by default.
        validate_shape: whether the initial value must have a known, fixed shape.
        caching_device: where reads are placed.
        name: its name, made unique.
        variable_def: a VariableDef to recreate it from.
        dtype: its type; that of the initial value by default.
        expected_shape: ignored, as in TF.
        import_scope: prefix for names in `variable_def`.
        constraint: a function from the updated value to the one to store.
        use_resource: make it a resource variable.

    Raises:
        ValueError: no initial value, or one without a known shape.
        TypeError: the initial value does not fit `dtype`.
    """

    _is_tensor_like = True
    __array_priority__ = 100

    if TYPE_CHECKING:

        def __init__(self, initial_value: Any = None, trainable: Any = None, **kwargs: Any) -> None:
            """Made by the metaclass, which picks the flavour."""

    _graph_key: str
    _handle: Tensor
    _initializer_op: Operation
    _initial_value: Any
    _snapshot: Tensor
    _save_slice_info: Any = None
    _in_graph_mode = True
    _chooses = True
    _distribute_strategy: Any = None

    # ------------------------------------------------------------ making
    def _prepare(self, initial_value: Any, name: str | None) -> tuple[Any, bool]:
        """The initial value, and whether it is a function; None is an error."""
        if initial_value is None:
            raise ValueError("initial_value must be specified.")
        if isinstance(initial_value, Tensor) and initial_value._op.graph.building_function:
            raise ValueError(
                f"Initializer for variable {name or 'Variable'} is from inside a control-flow "
                "construct, such as a loop or conditional. When creating a variable inside a loop "
                "or conditional, use a lambda as the initializer."
            )
        return initial_value, callable(initial_value)

    def _register(self, collections: Any, trainable: bool) -> None:
        graph = self.graph
        if collections is None:
            collections = [GraphKeys.GLOBAL_VARIABLES]
        if not isinstance(collections, (list, tuple, set)):
            raise ValueError(
                f"collections argument to Variable constructor must be a list, tuple, or set. Got "
                f"{collections!r} of type {type(collections).__name__}"
            )
        keys = list(collections)
        if trainable and GraphKeys.TRAINABLE_VARIABLES not in keys:
            keys.append(GraphKeys.TRAINABLE_VARIABLES)
        graph.add_to_collections(keys, self)

    # ------------------------------------------------------------ facts
    @property
    def name(self) -> str:
        """The name, "name:0"."""
        return self._handle.name

    @property
    def _shared_name(self) -> str:
        return self._handle.op.name

    @functools.cached_property
    def _unique_id(self) -> str:
        """A name that no other variable has, where names are shared."""
        return f"{self._shared_name}_{next(_numbers)}"

    @property
    def op(self) -> Operation:
        """The operation that holds the variable."""
        return self._handle.op

    @property
    def graph(self) -> Graph:
        """The graph of the variable."""
        return self._handle._op.graph

    @property
    def device(self) -> str:
        """The requested device."""
        return self._handle.device

    @property
    def dtype(self) -> DType:
        """The element type; a `_ref` type for reference variables."""
        raise NotImplementedError

    @property
    def shape(self) -> TensorShape:
        """The static shape."""
        raise NotImplementedError

    def get_shape(self) -> TensorShape:
        """The static shape."""
        return self.shape

    @property
    def initializer(self) -> Operation:
        """The operation that gives the variable its initial value."""
        return self._initializer_op

    @property
    def initial_value(self) -> Any:
        """The tensor of the initial value."""
        return self._initial_value

    @property
    def trainable(self) -> bool:
        """Whether optimizers update it by default."""
        return self._trainable

    @property
    def constraint(self) -> Any:
        """The function applied after updates, or None."""
        return self._constraint

    @property
    def synchronization(self) -> VariableSynchronization:
        """How copies agree."""
        return self._synchronization

    @property
    def aggregation(self) -> VariableAggregation:
        """How updates of copies are combined."""
        return self._aggregation

    _trainable: bool = True
    _constraint: Any = None
    _synchronization = VariableSynchronization.AUTO
    _aggregation = VariableAggregation.NONE

    # ------------------------------------------------------------ values
    def value(self) -> Tensor:
        """The value as last read: a tensor that every use of the variable shares."""
        return self._snapshot

    def read_value(self) -> Tensor:
        """A read of its own, made under the current control dependencies."""
        raise NotImplementedError

    def eval(self, session: Any = None) -> Any:
        """The value in `session` or the default session."""
        return self._snapshot.eval(session=session)

    def initialized_value(self) -> Any:
        """The value if the variable is initialized, else the initial value."""
        from importlib import import_module

        cond = import_module("opdock.ops.control").cond
        with name_scope(None, "initialized_value"):
            return cond(self._initialized(), self.read_value, lambda: self.initial_value)

    def _initialized(self) -> Tensor:
        raise NotImplementedError

    def load(self, value: Any, session: Any = None) -> None:
        """Stores `value` in `session` without adding operations.

        Raises:
            ValueError: there is no session.
        """
        from opdock.graph.nodes.default_session import get_default_session

        session = session or get_default_session()
        if session is None:
            raise ValueError(
                "Either session argument should be provided or default session should be "
                "established"
            )
        session.run(self.initializer, {self.initializer.inputs[1]: value})

    def _as_graph_element(self) -> Tensor:
        raise NotImplementedError

    def set_shape(self, shape: Any) -> None:
        """Refines the static shape."""
        self._handle.set_shape(shape)
        self._snapshot.set_shape(shape)

    def _set_save_slice_info(self, info: Any) -> None:
        self._save_slice_info = info

    def _get_save_slice_info(self) -> Any:
        return self._save_slice_info

    # ------------------------------------------------------------ updates
    def assign(
        self,
        value: Any,
        use_locking: bool = False,
        name: str | None = None,
        read_value: bool = True,
    ) -> Any:
        """Assigns `value`; returns the variable's new value."""
        raise NotImplementedError

    def assign_add(
        self,
        delta: Any,
        use_locking: bool = False,
        name: str | None = None,
        read_value: bool = True,
    ) -> Any:
        """Adds `delta`; returns the variable's new value."""
        raise NotImplementedError

    def assign_sub(
        self,
        delta: Any,
        use_locking: bool = False,
        name: str | None = None,
        read_value: bool = True,
    ) -> Any:
        """Subtracts `delta`; returns the variable's new value."""
        raise NotImplementedError

    # ------------------------------------------------------------ serialization
    def to_proto(self, export_scope: str | None = None) -> Any:
        """The variable as a VariableDef; None when it is outside `export_scope`."""
        from opdock.io import protos

        if export_scope is not None and not self.name.startswith(export_scope):
            return None

        def strip(text: str) -> str:
            return text if not export_scope else text.removeprefix(export_scope.rstrip("/") + "/")

        proto = protos.VariableDef(
            variable_name=strip(self.name), initializer_name=strip(self.initializer.name),
            snapshot_name=strip(self._snapshot.name), trainable=self.trainable,
            is_resource=not self.dtype._is_ref_dtype,
        )  # fmt: skip
        if isinstance(self._initial_value, Tensor):
            proto.initial_value_name = strip(self._initial_value.name)
        proto.synchronization = self.synchronization.value
        proto.aggregation = self.aggregation.value
        info = self._save_slice_info
        if info is not None:
            proto.save_slice_info_def.full_name = strip(info.full_name)
            proto.save_slice_info_def.full_shape.extend(info.full_shape)
            proto.save_slice_info_def.var_offset.extend(info.var_offset)
            proto.save_slice_info_def.var_shape.extend(info.var_shape)
        return proto

    @staticmethod
    def from_proto(variable_def: Any, import_scope: str | None = None) -> Variable:
        """A variable over existing operations of the default graph."""
        kind = variable_class(variable_def.is_resource)
        made: Variable = kind(variable_def=variable_def, import_scope=import_scope)
        return made

    def _restore_from(self, proto: Any, import_scope: str | None) -> None:
        graph = get_default_graph()

        def scoped(text: str) -> str:
            return f"{import_scope}/{text}" if import_scope else text

        self._handle = graph.as_graph_element(scoped(proto.variable_name))
        begin = graph.as_graph_element(scoped(proto.initializer_name))
        self._initializer_op = begin.op if isinstance(begin, Tensor) else begin
        # Older graphs do not name the read that goes with a resource.
        snapshot = proto.snapshot_name or f"{proto.variable_name[:-2]}/Read/ReadVariableOp:0"
        self._snapshot = graph.as_graph_element(scoped(snapshot))
        self._initial_value = (
            graph.as_graph_element(scoped(proto.initial_value_name))
            if proto.initial_value_name
            else None
        )
        self._trainable = proto.trainable
        self._constraint = None
        self._synchronization = VariableSynchronization(proto.synchronization)
        self._aggregation = VariableAggregation(proto.aggregation)
        if proto.HasField("save_slice_info_def"):
            self._save_slice_info = Variable.SaveSliceInfo(
                save_slice_info_def=proto.save_slice_info_def, import_scope=import_scope
            )

    # ------------------------------------------------------------ as a tensor
    def __iter__(self) -> Iterator[Any]:
        raise TypeError("'Variable' object is not iterable.")

    def __repr__(self) -> str:
        return f"<tf.Variable '{self.name}' shape={self.shape} dtype={self.dtype.name}>"

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    class SaveSliceInfo:
        """Which part of a larger saved tensor a variable is.

        Attributes:
            full_name: the name of the larger tensor.
            full_shape: its shape.
            var_offset: where the part begins.
            var_shape: the part's shape.
        """

        def __init__(
            self, full_name: str | None = None, full_shape: Any = None, var_offset: Any = None,
            var_shape: Any = None, save_slice_info_def: Any = None, import_scope: str | None = None,
        ) -> None:  # fmt: skip
            if save_slice_info_def is not None:
                full_name = save_slice_info_def.full_name
                full_name = f"{import_scope}/{full_name}" if import_scope else full_name
                full_shape = list(save_slice_info_def.full_shape)
                var_offset = list(save_slice_info_def.var_offset)
                var_shape = list(save_slice_info_def.var_shape)
            self.full_name = full_name
            self.full_shape = full_shape
            self.var_offset = var_offset
            self.var_shape = var_shape

        @property
        def spec(self) -> str:
            """TF's text form, "full_shape offset,length:..."."""
            full = " ".join(str(d) for d in self.full_shape) + " "
            parts = zip(self.var_offset, self.var_shape, strict=True)
            return full + ":".join(f"{o},{s}" for o, s in parts)

        def to_proto(self, export_scope: str | None = None) -> Any:
            """As a SaveSliceInfoDef; None when it is outside `export_scope`."""
            from opdock.io import protos

            name: str = self.full_name or ""
            if export_scope is not None:
                if not name.startswith(export_scope):
                    return None
                name = name.removeprefix(export_scope.rstrip("/") + "/")
            return protos.SaveSliceInfoDef(
                full_name=name, full_shape=self.full_shape, var_offset=self.var_offset,
                var_shape=self.var_shape,
            )  # fmt: skip


def _operator(name: str) -> Callable[..., Any]:
    def run(self: Variable, *args: Any) -> Any:
        return getattr(Tensor, name)(self.value(), *args)

    run.__name__ = run.__qualname__ = name
    return run


for _name in sorted(Tensor.OVERLOADABLE_OPERATORS - {"__getitem__"}):
    setattr(Variable, _name, _operator(_name))


def _getitem(self: Variable, item: Any) -> Any:
    from opdock.ops.composed.subscripts import slice_helper_var

    return slice_helper_var(self, item)


setattr(Variable, "__getitem__", _getitem)  # noqa: B010 - the class has no such slot for mypy


def _to_tensor(
    value: Variable, dtype: Any = None, name: str | None = None, as_ref: bool = False
) -> Any:
    wanted = None if dtype is None else dtypes.as_dtype(dtype)
    if wanted is not None and not wanted.is_compatible_with(value.dtype.base_dtype):
        raise ValueError(
            f"Incompatible type conversion requested to type '{wanted.name}' for variable of type "
            f"'{value.dtype.base_dtype.name}' ({value.name})"
        )
    return value._handle if as_ref and value.dtype._is_ref_dtype else value.value()


register_tensor_conversion_function(Variable, _to_tensor, priority=10)


def initial_tensor(value: Any, dtype: Any, name: str = "initial_value") -> Tensor:
    """The initial value as a tensor; a `_Initializer` object's `__call__` has been applied."""
    return convert_to_tensor(value, dtype, name)


def checked_shape(shape: Any, value: Tensor) -> Shape:
    """The shape that a variable is given beside its initial value.

    Raises:
        ValueError: the initial value does not fit it.
    """
    given = shapes.as_shape(shape)
    if not shapes.is_compatible(value.raw_shape, given):
        raise ValueError(
            f"The initial value's shape ({value.shape}) is not compatible with the explicitly "
            f"supplied `shape` argument ({TensorShape(given)})."
        )
    return given
