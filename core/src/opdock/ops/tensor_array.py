"""The tensor-array ops: arrays of tensors that are written and read one element at a time.

A handle names the array within one step; a scalar `flow` runs through all uses and orders them.
The gradient of an array is another array, kept with it, one per `tf.gradients` call.

There are three generations. `tf.TensorArray` makes the newest; older graphs have the others, whose
handles are a string or a reference to one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from opdock import shapes
from opdock.graph.control.func_graph import FuncGraph
from opdock.graph.nodes import gradient_scope
from opdock.graph.nodes.graph import Graph, get_default_graph
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.nodes.scopes import control_dependencies
from opdock.graph.nodes.traits import Moves, Traits
from opdock.ops.identity import identity
from opdock.ops.registry import GradientFn, OpSpec, ShapeSig, define_op
from opdock.ops.support.common_shapes import no_outputs
from opdock.shapes import Shape

__all__: list[str] = []

_HANDLES: Final = {"": "Ref(string)", "V2": "string", "V3": "resource"}
_FITS: Final = "element_shape: shape = unknown"
_SIZED: Final = "dynamic_size: bool = false, clear_after_read: bool = true"
_NAMED: Final = 'tensor_array_name: string = ""'
_MOVES: Final = {"ReadV3": Moves.READ, "WriteV3": Moves.WRITE, "GradV3": Moves.GRADIENT}


def _define(name: str, signature: str, attrs: str = "") -> OpSpec:
    """An op on arrays. All are stateful, unlike some of the older ones in TF's definitions: what
    an array holds is state.
    """
    spec = define_op(f"TensorArray{name}", signature, attrs, stateful=True)
    # Tracers, and loops that are compiled whole, know the newest.
    return spec.declare(Traits(local=name.endswith("V3"), moves=_MOVES.get(name)))


def _each(name: str, signature: str, attrs: str = "") -> dict[str, OpSpec]:
    """An op on an array's handle in all generations."""
    return {
        version: _define(f"{name}{version}", f"handle: {handle}{signature}", attrs)
        for version, handle in _HANDLES.items()
    }


_SOURCE: Final = "source: string"

_make = {
    "": _define(
        "", "size: int32 -> handle: Ref(string)", f"dtype: type, {_SIZED}, {_NAMED}, {_FITS}"
    ),
    "V2": _define(
        "V2", "size: int32 -> handle: string", f"dtype: type, {_FITS}, {_SIZED}, {_NAMED}"
    ),
    "V3": _define(
        "V3",
        "size: int32 -> handle: resource, flow: float",
        f"dtype: type, {_FITS}, {_SIZED}, identical_element_shapes: bool = false, {_NAMED}",
    ),
}
_grad = {
    "": _define("Grad", "handle: string, flow_in: float -> grad_handle: Ref(string)", _SOURCE),
    "V2": _define("GradV2", "handle: string, flow_in: float -> grad_handle: string", _SOURCE),
    "V3": _define(
        "GradV3",
        "handle: resource, flow_in: float -> grad_handle: resource, flow_out: float",
        _SOURCE,
    ),
    "WithShape": _define(
        "GradWithShape",
        "handle: resource, flow_in: float, shape_to_prepend: int32 "
        "-> grad_handle: resource, flow_out: float",
        _SOURCE,
    ),
}
_write = _each("Write", ", index: int32, value: T, flow_in: float -> flow_out: float", "T: type")
_read = _each("Read", ", index: int32, flow_in: float -> value: dtype", "dtype: type")
_gather = _each(
    "Gather", ", indices: int32, flow_in: float -> value: dtype", f"dtype: type, {_FITS}"
)
_scatter = _each(
    "Scatter", ", indices: int32, value: T, flow_in: float -> flow_out: float", "T: type"
)
_concat = _each(
    "Concat", ", flow_in: float -> value: dtype, lengths: int64",
    "dtype: type, element_shape_except0: shape = unknown",
)  # fmt: skip
_split = _each("Split", ", value: T, lengths: int64, flow_in: float -> flow_out: float", "T: type")
_size = _each("Size", ", flow_in: float -> size: int32")
_close = _each("Close", " ->")
# What the oldest has for a gather and a scatter of all elements.
_pack = _define(
    "Pack", "handle: Ref(string), flow_in: float -> value: dtype", f"dtype: type, {_FITS}"
)
_unpack = _define(
    "Unpack", "handle: Ref(string), value: T, flow_in: float -> flow_out: float", "T: type"
)
for _op in (*_make.values(), *_size.values(), *_close.values()):
    _op.not_differentiable()

tensor_array_op = _make["V3"]
tensor_array_grad_op = _grad["V3"]
tensor_array_write_op = _write["V3"]
tensor_array_read_op = _read["V3"]
tensor_array_gather_op = _gather["V3"]
tensor_array_scatter_op = _scatter["V3"]
tensor_array_concat_op = _concat["V3"]
tensor_array_split_op = _split["V3"]
tensor_array_size_op = _size["V3"]
tensor_array_close_op = _close["V3"]


# ---------------------------------------------------------------- shapes
_ShapeFn = Callable[[ShapeSig], Shape | list[Shape]]


def _shape(*specs: OpSpec) -> Callable[[_ShapeFn], _ShapeFn]:
    """Attaches a shape function to several ops."""

    def attach(fn: _ShapeFn) -> _ShapeFn:
        for spec in specs:
            spec.shape(fn)
        return fn

    return attach


@_shape(*_make.values(), *_grad.values())
def _handle_shape(sig: ShapeSig) -> list[Shape]:
    if sig.op.endswith(("V3", "WithShape")):
        if sig.op == "TensorArrayV3":
            shapes.with_rank(sig.shapes[0], 0)
        return [()] * sig.n_outputs
    return [(2,)]


@_shape(*_write.values(), *_scatter.values(), *_split.values(), *_size.values(), _unpack)
def _scalars(sig: ShapeSig) -> list[Shape]:
    return [()] * sig.n_outputs


_shape(*_close.values())(no_outputs)


@_shape(*_read.values())
def _read_shape(sig: ShapeSig) -> Shape:
    shapes.with_rank(sig.shapes[1], 0)
    return None


@_shape(*_gather.values(), _pack)
def _gather_shape(sig: ShapeSig) -> Shape:
    count = None if sig.op == "TensorArrayPack" else shapes.with_rank(sig.shapes[1], 1)[0]
    element: Shape = sig.attrs["element_shape"]
    return None if element is None else (count, *element)


@_shape(*_concat.values())
def _concat_shape(sig: ShapeSig) -> list[Shape]:
    rest: Shape = sig.attrs["element_shape_except0"]
    return [None if rest is None else (None, *rest), (None,)]


# ---------------------------------------------------------------- gradients
def _gradient(*specs: OpSpec) -> Callable[[GradientFn], GradientFn]:
    """Attaches a gradient to several ops."""

    def attach(fn: GradientFn) -> GradientFn:
        for spec in specs:
            spec.gradient(fn)
        return fn

    return attach


def _version(op: Operation) -> str:
    return op.type[-2:] if op.type.endswith(("V2", "V3")) else ""


def _gradient_array(op: Operation, flow: Tensor) -> tuple[Tensor, Tensor]:
    """The handle of the array of gradients, and the flow of what comes after it was made."""
    version = _version(op)
    array = _of_this_turn(op.inputs[0]) if version == "V3" else op.inputs[0]
    made = _grad[version](array, flow, source=gradient_scope.current())
    if version == "V3":
        handle, out = made
        return handle, out
    with control_dependencies([made.op]):
        return made, identity(flow)


def _of_this_turn(array: Tensor) -> Tensor:
    """The handle of an array from which a call of `tf.gradients` is to get its arrays of gradients.

    A call in the body of a loop, or in a function, is made again each time the body runs. An array
    that is older has kept the gradients of the time before, and is given new arrays for them first:
    where the call was made, or, for one of a turn of an earlier loop, in that of the backward loop.
    """
    call = gradient_scope.call()
    if call is None or not isinstance(call.graph, FuncGraph):
        return array
    origin, sources = _origin(array)
    made_in = origin.op.graph
    graph = call.graph if call.graph._may_capture(made_in) else _backward_of(made_in)
    if made_in is call.graph or graph is None:
        return array
    key = (origin, sources, graph)
    if key not in call.kept:
        with graph.as_default():
            found = origin
            for source in reversed(sources):
                found, _ = tensor_array_grad_op(found, 0.0, source=source)
            new, _ = _grad["WithShape"](found, 0.0, [], source=call.scope, _anew=True)
            with control_dependencies([new.op]):
                call.kept[key] = identity(found)
    kept: Tensor = call.kept[key]
    return kept


def _origin(array: Tensor) -> tuple[Tensor, tuple[str, ...]]:
    """What made an array, or that of which it has the gradients; and whose, the last ones first.

    Several nodes ask for one array of gradients, and a body has a parameter for one from outside.
    """
    sources: list[str] = []
    while True:
        op = array.op
        graph = op.graph
        outside = graph.outside.get(array) if isinstance(graph, FuncGraph) else None
        if outside is not None:
            array = outside
        elif op.type == "Identity":
            anew = next((c for c in op.control_inputs if "_anew" in c.attrs), None)
            if anew is not None and sources[-1:] == [anew.attrs["source"]]:
                return anew.outputs[0], tuple(sources[:-1])
            array = op.inputs[0]
        elif op.type == "TensorArrayGradV3":
            sources.append(op.attrs["source"])
            array = op.inputs[0]
        else:
            return array, tuple(sources)


def _backward_of(body: Graph) -> Graph | None:
    """The body under way that has the values of another body, which has run before."""
    graph: Graph | None = get_default_graph()
    while isinstance(graph, FuncGraph) and not graph._has_values_of(body):
        graph = graph.outer
    return graph if isinstance(graph, FuncGraph) else None


def _gradients_of_written(op: Operation, flow: Tensor) -> tuple[Tensor, Tensor]:
    """The same once `op` has written: gradients that never come are zeros of what it wrote."""
    # The turns of a backward loop come after the forward loop, to whose graph the op belongs.
    with control_dependencies([op] if op.graph is flow._op.graph else []):
        return _gradient_array(op, flow)


@_gradient(*_grad.values())
def _grad_gradient(op: Operation, handle: Any, flow: Tensor | None = None) -> list[Any]:
    # An array of gradients has one of its own for each computation that differentiates it, which
    # its reads and writes find by its handle; here only their order passes on.
    return [None, flow, *([None] * (len(op.inputs) - 2))]


@_gradient(*_read.values())
def _read_gradient(op: Operation, grad: Tensor) -> list[Any]:
    handle, flow = _gradient_array(op, op.inputs[2])
    return [None, None, _write[_version(op)](handle, op.inputs[1], grad, flow)]


@_gradient(*_write.values())
def _write_gradient(op: Operation, flow: Tensor) -> list[Any]:
    handle, gflow = _gradients_of_written(op, flow)
    grad = _read[_version(op)](handle, op.inputs[1], gflow, dtype=op.attrs["T"])
    return [None, None, _known(grad, op.inputs[2]), flow]


@_gradient(*_gather.values())
def _gather_gradient(op: Operation, grad: Tensor) -> list[Any]:
    handle, flow = _gradient_array(op, op.inputs[2])
    return [None, None, _scatter[_version(op)](handle, op.inputs[1], grad, flow)]


@_gradient(*_scatter.values())
def _scatter_gradient(op: Operation, flow: Tensor) -> list[Any]:
    handle, gflow = _gradients_of_written(op, flow)
    grad = _gather[_version(op)](handle, op.inputs[1], gflow, dtype=op.attrs["T"])
    return [None, None, _known(grad, op.inputs[2]), flow]


@_gradient(*_concat.values())
def _concat_gradient(op: Operation, grad: Tensor, unused: Any) -> list[Any]:
    handle, flow = _gradient_array(op, op.inputs[1])
    return [None, _split[_version(op)](handle, grad, op.outputs[1], flow)]


@_gradient(*_split.values())
def _split_gradient(op: Operation, flow: Tensor) -> list[Any]:
    handle, gflow = _gradients_of_written(op, flow)
    grad, _ = _concat[_version(op)](handle, gflow, dtype=op.attrs["T"])
    return [None, _known(grad, op.inputs[1]), None, flow]


@_gradient(_pack)
def _pack_gradient(op: Operation, grad: Tensor) -> list[Any]:
    handle, flow = _gradient_array(op, op.inputs[1])
    return [None, _unpack(handle, grad, flow)]


@_gradient(_unpack)
def _unpack_gradient(op: Operation, flow: Tensor) -> list[Any]:
    handle, gflow = _gradients_of_written(op, flow)
    grad = _pack(handle, gflow, dtype=op.attrs["T"])
    return [None, _known(grad, op.inputs[1]), flow]


def _known(grad: Tensor, like: Tensor) -> Tensor:
    grad.set_shape(like.raw_shape)
    return grad
