"""The two citizens of a graph: `Operation` (node) and `Tensor` (edge)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from opdock import errors, shapes
from opdock.dtypes import DType
from opdock.graph.nodes.frames import Frames, decoded, line_of
from opdock.graph.nodes.reference import Referable
from opdock.nearest import near
from opdock.shapes import Shape, TensorShape

if TYPE_CHECKING:
    from opdock.graph.nodes.graph import Graph
    from opdock.graph.nodes.registry import OpSpec


class Operation:
    """A node: an op type with attributes, inputs, control inputs and outputs."""

    __slots__ = (
        "__dict__",
        "__weakref__",
        "_control_inputs",
        "_device",
        "_frames",
        "_id",
        "_inputs",
        "_name",
        "_original_op",
        "_spec",
        "attrs",
        "graph",
        "outputs",
    )
    _control_flow_post_processing = staticmethod(lambda: None)  # Keras calls it: nothing is left

    def __init__(
        self,
        graph: Graph,
        spec: OpSpec,
        name: str,
        inputs: Sequence[Tensor],
        attrs: dict[str, Any],
        control_inputs: list[Operation],
        output_dtypes: list[DType],
        output_shapes: list[Shape],
        op_id: int,
        frames: Frames,
    ) -> None:
        self.graph = graph
        self._spec = spec
        self._name = name
        self._inputs = tuple(inputs)
        self._control_inputs = control_inputs
        self.attrs = attrs
        self._device = ""
        self._id = op_id
        self._frames = frames
        self._original_op: Operation | None = None
        self.outputs = [
            graph.tensor_type(self, i, dtype, shape)
            for i, (dtype, shape) in enumerate(zip(output_dtypes, output_shapes, strict=True))
        ]

    # ------------------------------------------------------------ identity
    @property
    def name(self) -> str:
        """The full name, unique in the graph."""
        return self._name

    @property
    def type(self) -> str:
        """The op type, e.g. "MatMul"."""
        return self._spec.name

    @property
    def spec(self) -> OpSpec:
        """The registered definition of the op type."""
        return self._spec

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """The data inputs, lists flattened."""
        return self._inputs

    @property
    def control_inputs(self) -> list[Operation]:
        """Operations that run before this one without giving it data."""
        return self._control_inputs

    @property
    def control_outputs(self) -> list[Operation]:
        """Operations that have this one as control input."""
        return [op for op in self.graph.get_operations() if self in op._control_inputs]

    @property
    def device(self) -> str:
        """The requested device, possibly partial or empty."""
        return self._device

    def _set_device(self, device: Any) -> None:
        from opdock.graph.nodes.devicespec import DeviceSpec

        self._device = device.to_string() if isinstance(device, DeviceSpec) else (device or "")

    def colocation_groups(self) -> list[bytes]:
        """The groups (`loc:@name`) that this op must share a device with."""
        groups = self.attrs.get("_class") or ()
        # What is no UTF-8 in a GraphDef is bytes here, and no op's name.
        found = [g.encode() for g in groups if isinstance(g, str) and g.startswith("loc:@")]
        return found or [f"loc:@{self._name}".encode()]

    # ------------------------------------------------------------ attributes
    def get_attr(self, name: str) -> Any:
        """The value of an attribute as TF returns it: strings as bytes, shapes as protobuf.

        Raises:
            ValueError: the op has no such attribute.
        """
        if name not in self.attrs:
            raise ValueError(
                f"Operation '{self._name}' has no attr named '{name}'.{near(name, self.attrs)}"
            )
        return _public_attr(self.attrs[name], self._spec.attr_type(name))

    def _set_attr(self, name: str, value: Any) -> None:
        from opdock.graph.serial.attr_proto import native_attr

        self.attrs[name] = native_attr(value)
        self.graph._changed()

    @property
    def node_def(self) -> Any:
        """This node as a NodeDef."""
        # The writer reads operations.
        from opdock.graph.serial.node_def import to_node_def

        return to_node_def(self)

    @property
    def op_def(self) -> Any:
        """The op type's definition as an OpDef."""
        return self._spec.to_proto()

    @property
    def _input_types(self) -> list[DType]:
        """The types that the op takes: references only where it asks for them."""
        types: list[DType] = []
        for arg in self._spec.definition.inputs:
            count = 1
            if arg.type_list_attr:
                count = len(self.attrs[arg.type_list_attr])
            elif arg.number_attr:
                count = self.attrs[arg.number_attr]
            some = [t._dtype for t in self._inputs[len(types) : len(types) + count]]
            types += some if arg.is_ref else [t.base_dtype for t in some]
        return types

    @property
    def _outputs(self) -> list[Tensor]:
        return self.outputs  # as `_inputs`: programs that edit graphs ask for both

    # ------------------------------------------------------------ edits
    @property
    def _control_outputs(self) -> list[Operation]:
        return self.control_outputs

    def _remove_all_control_inputs(self) -> None:
        self._control_inputs = []
        self.graph._changed()

    def _add_control_input(self, op: Operation) -> None:
        self._add_control_inputs([op])

    def _add_control_inputs(self, ops: list[Operation]) -> None:
        for op in ops:
            if op not in self._control_inputs:
                self._control_inputs = [*self._control_inputs, op]
        self.graph._changed()

    def _update_input(self, index: int, tensor: Tensor) -> None:
        self.graph._check_same_graph(tensor)
        if not 0 <= index < len(self._inputs):
            raise errors.OutOfRangeError(
                None, self,
                f"Cannot update edge. Input index [{index}] is greater than the number of total "
                f"inputs [{len(self._inputs)}].",
            )  # fmt: skip
        old = self._inputs[index]
        if not shapes.is_compatible(tensor._shape, old._shape):
            raise errors.InvalidArgumentError(
                None, self,
                f"Cannot update edge, incompatible shapes: {shapes.text(tensor._shape)} and "
                f"{shapes.text(old._shape)}.",
            )  # fmt: skip
        wrong = self.graph._mistyped
        wanted = wrong[self, index][0] if (self, index) in wrong else self._input_types[index]
        self._inputs = (*self._inputs[:index], tensor, *self._inputs[index + 1 :])
        if tensor._dtype.base_dtype is wanted.base_dtype:
            wrong.pop((self, index), None)
        else:
            wrong[self, index] = (
                wanted,
                (
                    f"Input {index} of node {self._name} was passed {tensor._dtype.name} from "
                    f"{tensor.name} incompatible with expected {wanted.name}."
                ),
            )
        if old._consumers:
            old._consumers.remove(self)
        tensor._add_consumer(self)
        self.graph._changed()

    # ------------------------------------------------------------ where it came from
    @property
    def traceback(self) -> list[tuple[str, int, str, str]]:
        """User frames, outermost first: (file, line, function, source line)."""
        return [frame[:4] for frame in decoded(self._frames)]

    @property
    def traceback_with_start_lines(self) -> list[tuple[str, int, str, str, int]]:
        """`traceback` with the line in which each function begins."""
        return decoded(self._frames)

    @property
    def user_line(self) -> str:
        """The user's line that created the op as "file:line"; empty when there is none."""
        if not self._frames:
            return ""
        code, lasti = self._frames[0]
        return f"{code.co_filename}:{line_of(code, lasti)}"

    def run(self, feed_dict: dict[Any, Any] | None = None, session: Any = None) -> None:
        """Runs the operation in `session` or the default session."""
        from opdock.graph.nodes.default_session import default_session_for

        default_session_for(
            self.graph, session, "run", "Cannot execute operation using `run()`"
        ).run(self, feed_dict)

    def values(self) -> tuple[Tensor, ...]:
        """The outputs."""
        return tuple(self.outputs)

    def __lt__(self, other: Operation) -> bool:
        return self._id < other._id

    def __str__(self) -> str:
        return str(self.node_def)

    def __repr__(self) -> str:
        return f"<tf.Operation '{self._name}' type={self.type}>"


def _public_attr(value: Any, attr_type: str | None) -> Any:
    if isinstance(value, str):
        return value.encode()
    if attr_type == "shape":
        return TensorShape(value).as_proto()
    if attr_type == "tensor":
        from opdock.io.tensor_proto import make_tensor_proto

        return make_tensor_proto(value)
    if isinstance(value, list):
        inner = attr_type[5:-1] if attr_type is not None and attr_type.startswith("list(") else None
        return [_public_attr(v, inner) for v in value]
    return value


class Tensor(Referable):
    """An edge: one output of an operation, with a type and a static shape.

    `==` is identity; `tf.equal` compares elements. After `tf.enable_tensor_equality`, where
    operations run as they are made, `==` does so too; `hash` stays that of the identity.
    """

    __slots__ = (
        "__dict__", "__weakref__", "_consumers", "_dtype", "_op", "_shape", "_told_shape",
        "_value_index",
    )  # fmt: skip

    __array_priority__ = 100
    _is_tensor_like: ClassVar[bool] = True
    _USE_EQUALITY: ClassVar[bool] = False
    OVERLOADABLE_OPERATORS: ClassVar[set[str]] = {
        "__add__", "__radd__", "__sub__", "__rsub__", "__mul__", "__rmul__", "__div__", "__rdiv__",
        "__truediv__", "__rtruediv__", "__floordiv__", "__rfloordiv__", "__mod__", "__rmod__",
        "__lt__", "__le__", "__gt__", "__ge__", "__and__", "__rand__", "__or__", "__ror__",
        "__xor__", "__rxor__", "__getitem__", "__pow__", "__rpow__", "__invert__", "__neg__",
        "__abs__", "__matmul__", "__rmatmul__", "__eq__", "__ne__",
    }  # fmt: skip

    if TYPE_CHECKING:
        # `ops.operators` installs these: the ops stand above this layer.
        def __add__(self, other: Any) -> Tensor: ...
        def __radd__(self, other: Any) -> Tensor: ...
        def __sub__(self, other: Any) -> Tensor: ...
        def __rsub__(self, other: Any) -> Tensor: ...
        def __mul__(self, other: Any) -> Tensor: ...
        def __rmul__(self, other: Any) -> Tensor: ...
        def __truediv__(self, other: Any) -> Tensor: ...
        def __rtruediv__(self, other: Any) -> Tensor: ...
        def __floordiv__(self, other: Any) -> Tensor: ...
        def __rfloordiv__(self, other: Any) -> Tensor: ...
        def __mod__(self, other: Any) -> Tensor: ...
        def __rmod__(self, other: Any) -> Tensor: ...
        def __pow__(self, other: Any) -> Tensor: ...
        def __rpow__(self, other: Any) -> Tensor: ...
        def __matmul__(self, other: Any) -> Tensor: ...
        def __rmatmul__(self, other: Any) -> Tensor: ...
        def __and__(self, other: Any) -> Tensor: ...
        def __rand__(self, other: Any) -> Tensor: ...
        def __or__(self, other: Any) -> Tensor: ...
        def __ror__(self, other: Any) -> Tensor: ...
        def __xor__(self, other: Any) -> Tensor: ...
        def __rxor__(self, other: Any) -> Tensor: ...
        def __lt__(self, other: Any) -> Tensor: ...
        def __le__(self, other: Any) -> Tensor: ...
        def __gt__(self, other: Any) -> Tensor: ...
        def __ge__(self, other: Any) -> Tensor: ...
        def __getitem__(self, key: Any) -> Tensor: ...
        def __neg__(self) -> Tensor: ...
        def __abs__(self) -> Tensor: ...
        def __invert__(self) -> Tensor: ...

    _known: Any = None
    """The value, of a tensor that has one: an array."""
    _known_handle: Any = None
    """What is known of the resource or list behind a handle that has a value."""

    def __init__(self, op: Operation, value_index: int, dtype: DType, shape: Shape) -> None:
        self._op = op
        self._value_index = value_index
        self._dtype = dtype
        self._shape = shape
        self._consumers: list[Operation] | None = None
        self._told_shape: TensorShape | None = None

    @property
    def op(self) -> Operation:
        """The operation that produces this tensor."""
        return self._op

    @property
    def value_index(self) -> int:
        """Which output of `op` this is."""
        return self._value_index

    @property
    def dtype(self) -> DType:
        """The element type."""
        return self._dtype

    @property
    def graph(self) -> Graph:
        """The graph that holds the tensor."""
        return self._op.graph

    @property
    def name(self) -> str:
        """The name, "op_name:index"."""
        return f"{self._op._name}:{self._value_index}"

    @property
    def device(self) -> str:
        """The requested device of the producing op."""
        return self._op._device

    @property
    def raw_shape(self) -> Shape:
        """The static shape as a raw tuple (see `opdock.shapes`)."""
        return self._shape

    @property
    def shape(self) -> TensorShape:
        """The static shape: one object, until more is known of it."""
        told = self._told_shape
        if told is None or told.raw is not self._shape:
            told = self._told_shape = TensorShape(self._shape)
        return told

    def get_shape(self) -> TensorShape:
        """The static shape."""
        return self.shape

    def _shape_tuple(self) -> Shape:
        return self._shape

    def _shape_as_list(self) -> list[int | None] | None:
        return None if self._shape is None else list(self._shape)

    def set_shape(self, shape: Any) -> None:
        """Refines the static shape; ValueError when it contradicts what is known."""
        try:
            self._shape = shapes.merge(self._shape, shapes.as_shape(shape))
        except ValueError as e:
            raise ValueError(f"{e} (tensor '{self.name}')") from None

    def _as_tf_output(self) -> Tensor:
        """What TensorFlow's C interface would know the tensor by."""
        return self

    def _as_node_def_input(self) -> str:
        name = self._op._name
        return f"{name}:{self._value_index}" if self._value_index else name

    def consumers(self) -> list[Operation]:
        """The operations that take this tensor as input."""
        return list(self._consumers or ())

    def _add_consumer(self, op: Operation) -> None:
        if self._consumers is None:
            self._consumers = [op]
        else:
            self._consumers.append(op)

    def eval(self, feed_dict: dict[Any, Any] | None = None, session: Any = None) -> Any:
        """Evaluates the tensor in `session` or the default session."""
        from opdock.graph.nodes.default_session import default_session_for

        return default_session_for(
            self.graph, session, "eval", "Cannot evaluate tensor using `eval()`"
        ).run(self, feed_dict)

    @staticmethod
    def _override_operator(operator: str, func: Callable[..., Any]) -> None:
        if operator not in Tensor.OVERLOADABLE_OPERATORS:
            raise ValueError(f"Overriding {operator} is disallowed")
        setattr(Tensor, operator, func)

    def __iter__(self) -> Iterator[Any]:
        raise errors.OperatorNotAllowedInGraphError(
            "iterating over `tf.Tensor` is not allowed in Graph execution. To iterate over "
            f"this tensor ({self.name}) use tf.map_fn or tf.unstack, or `for` in a function that "
            "is decorated with @tf.function."
        )

    def __bool__(self) -> bool:
        raise errors.OperatorNotAllowedInGraphError(
            "using a `tf.Tensor` as a Python `bool` is not allowed in Graph execution. Ask "
            f"`if t is not None:` whether there is a tensor ({self.name}), and use tf.cond to "
            "compute what depends on its value, or `if` in a function that is decorated with "
            "@tf.function."
        )

    __nonzero__ = __bool__  # Python 2's name, which code for both asks classes for

    def __len__(self) -> int:
        raise TypeError(
            f"len is not well defined for the symbolic tensor {self.name}. Use `x.shape` instead."
        )

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray[Any, Any]:
        raise NotImplementedError(
            f"Cannot convert a symbolic Tensor ({self.name}) to a numpy array; run it in a Session."
        )

    def __copy__(self) -> Tensor:
        return self

    def __str__(self) -> str:
        shape = "" if self._shape is None else f", shape={TensorShape(self._shape)}"
        device = f", device={self._op._device}" if self._op._device else ""
        return f'Tensor("{self.name}"{shape}, dtype={self._dtype.name}{device})'

    def __repr__(self) -> str:
        return (
            f"<tf.Tensor '{self.name}' shape={TensorShape(self._shape)} dtype={self._dtype.name}>"
        )


def is_tensor(x: Any) -> bool:
    """Whether `x` is a Tensor or a graph object that stands for one (variable, slices)."""
    return isinstance(x, Tensor) or getattr(x, "_is_tensor_like", False)


def has_graph(x: Any) -> bool:
    """Whether `x` is a tensor, or what lives in a graph as tensors do: variables, composites."""
    return isinstance(x, Tensor) or hasattr(x, "graph")


def graph_behind(x: Any) -> Any:
    """The graph in which `x` lives, one that keeps no operation included; None where it has none.

    A tensor that has its value does not tell its graph, as in TensorFlow.
    """
    return x._op.graph if isinstance(x, Tensor) else getattr(x, "graph", None)


__all__ = ["Operation", "Tensor", "graph_behind", "has_graph", "is_tensor"]
