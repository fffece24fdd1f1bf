"""Small functions of TF's internal tree, each a line or two over public ones."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from opdock.dtypes import as_dtype
from opdock.graph.nodes.composite import CompositeTensor, is_tensor
from opdock.graph.nodes.constant_value import constant_for_shapes, constant_value
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.graph import Graph, get_default_graph
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.nodes.registry import all_ops
from opdock.graph.nodes.replication import is_first_replica
from opdock.graph.nodes.scopes import graph_of
from opdock.shapes import TensorShape

__all__ = [
    "RegisterShape",
    "TensorLike",
    "as_graph_element",
    "containing_context",
    "get_build_info",
    "get_enclosing_xla_context",
    "get_name_scope",
    "get_registered_ops",
    "get_seed_or_none",
    "graph_from_inputs",
    "in_xla_context",
    "inside_function",
    "internal_convert_n_to_tensor",
    "internal_convert_to_tensor",
    "is_resource_variable",
    "is_symbolic_tensor",
    "list_local_devices",
    "matrix",
    "register_symbolic_tensor_type",
    "scalar",
    "set_call_cpp_shape_fn",
    "set_shapes_for_outputs",
    "skip_summary",
    "smart_case",
    "smart_cond",
    "smart_constant_value",
    "uid",
    "unknown_shape",
    "vector",
]  # fmt: skip

_ids = itertools.count()


# ------------------------------------------------------------------------------------ graphs
def smart_constant_value(pred: Any) -> bool | None:
    """A condition that is known while the graph is built; None if it is not.

    Raises:
        TypeError: it is no condition.
    """
    if isinstance(pred, Tensor):
        found = evaluated_constant(pred._op.graph, pred)
        return None if found is None else bool(found)
    if isinstance(pred, bool) or (isinstance(pred, int) and pred in (0, 1)):
        return bool(pred)
    if isinstance(pred, np.bool_):
        return bool(pred)
    raise TypeError(
        "`pred` must be a Tensor, or a Python bool, or 1 or 0. Found instead: "
        f"{type(pred).__name__} {pred!r}"
    )


def convert_to_tensor_or_composite(value: Any, dtype: Any = None, name: str | None = None) -> Any:
    """A tensor of the value; one that is made of several tensors stays as it is.

    Raises:
        ValueError: it has another type than `dtype`.
    """
    if not isinstance(value, CompositeTensor):
        return convert_to_tensor(value, dtype, name)
    found = getattr(value, "dtype", None)
    if dtype is not None and not as_dtype(dtype).is_compatible_with(found):
        raise ValueError(
            f"Tensor conversion requested dtype {as_dtype(dtype).name} for Tensor with dtype "
            f"{getattr(found, 'name', found)}: {value!r}"
        )
    return value


def evaluated_constant(graph: Any, output: Tensor) -> Any:
    """What a tensor is in every step, as far as shape functions can tell, or None.

    TensorFlow's C interface is asked for it with the graph and the output as that knows them:
    `Graph._c_graph` and `Tensor._as_tf_output()`, which are graph and tensor themselves here.
    """
    known = constant_value(output)
    if known is not None:
        return known
    found = constant_for_shapes(output)
    return found if isinstance(found, np.ndarray) else None


def smart_cond(
    pred: Any,
    true_fn: Callable[[], Any] | None = None,
    false_fn: Callable[[], Any] | None = None,
    name: str | None = None,
    fn1: Callable[[], Any] | None = None,
    fn2: Callable[[], Any] | None = None,
) -> Any:
    """One branch alone where the condition is known while the graph is built, else `tf.cond`.

    Raises:
        TypeError: a branch cannot be called.
    """
    yes, no = true_fn or fn1, false_fn or fn2
    if not callable(yes) or not callable(no):
        raise TypeError("`true_fn` and `false_fn` must be callable.")
    known = smart_constant_value(pred)
    if known is not None:
        return yes() if known else no()
    from opdock.ops.control import cond

    return cond(pred, true_fn=yes, false_fn=no, name=name)


def smart_case(
    pred_fn_pairs: Any,
    default: Callable[[], Any] | None = None,
    exclusive: bool = False,
    name: str = "smart_case",
) -> Any:
    """`tf.case` of those predicates that are not known while the graph is built.

    Raises:
        TypeError: the pairs are neither a list, a tuple nor a dict.
        ValueError: there is none, or none holds and there is no default.
    """
    from opdock.ops.composed.case import case

    if not isinstance(pred_fn_pairs, (list, tuple, dict)):
        raise TypeError("fns must be a list, tuple, or dict")
    pairs = list(pred_fn_pairs.items() if isinstance(pred_fn_pairs, dict) else pred_fn_pairs)
    if not pairs:
        raise ValueError("Must have at least one predicate and function")
    open_pairs = []
    for pred, fn in pairs:
        known = smart_constant_value(pred)
        if known:
            default = fn
            break
        if known is None:
            open_pairs.append((pred, fn))
    if open_pairs:
        return case(open_pairs, default=default, exclusive=exclusive, name=name)
    if default is None:
        raise ValueError("No predicate holds, and there is no default")
    return default()


class _IsTensorLike(type):
    def __instancecheck__(cls, value: Any) -> bool:
        return is_tensor(value)


class TensorLike(metaclass=_IsTensorLike):
    """`isinstance(value, TensorLike)` holds for tensors, slices and sparse tensors."""


def as_graph_element(obj: Any) -> Any:
    """What an object says that it is in the graph, or None."""
    convert = getattr(obj, "_as_graph_element", None)
    return convert() if callable(convert) else None


def graph_from_inputs(op_input_list: Any, graph: Graph | None = None) -> Graph:
    """The graph in which an op of these inputs belongs.

    Args:
        op_input_list: what the op takes; values that are in no graph do not count.
        graph: the graph that the caller wants.

    Raises:
        TypeError: `graph` is none.
        ValueError: an input is in another graph.
    """
    if graph is not None and not isinstance(graph, Graph):
        raise TypeError(f"Input graph needs to be a Graph: {graph}")
    default = get_default_graph()
    if default.building_function:
        return default
    inputs = list(op_input_list)
    if graph is None:
        return graph_of(inputs)
    for value in inputs:
        found = value if isinstance(value, Tensor | Operation) else as_graph_element(value)
        if found is not None and found.graph is not graph:
            raise ValueError(f"{found} is not from the passed-in graph.")
    return graph


def inside_function() -> bool:
    """Whether ops are made in a `tf.function`: never, as functions of graphs are traced at once."""
    return False


def skip_summary() -> bool:
    """Whether summaries made here are left out: those of every replica but the first."""
    return not is_first_replica()


def is_symbolic_tensor(value: Any) -> bool:
    """Whether a value is a tensor of a graph, and has no value yet."""
    return isinstance(value, Tensor) and not value._op.graph.eager


def in_xla_context(graph: Graph) -> bool:
    """Whether a graph is built for XLA alone: it never is."""
    return False


def get_enclosing_xla_context() -> None:
    """What a graph is built in for XLA: there is no such thing."""


def containing_context(ctxt: Any, stop_ctxt: Any = None) -> None:
    """What is around a context of control flow: nothing, as loops and branches are functions."""


def get_name_scope() -> str:
    """The current name scope of the default graph."""
    return str(get_default_graph().get_name_scope())


def uid() -> int:
    """A number that no other call gives."""
    return next(_ids)


def set_call_cpp_shape_fn(call_cpp_shape_fn: Callable[..., Any]) -> None:
    """Does nothing: ops infer their own shapes and ask no function of another library."""


def set_shapes_for_outputs(op: Any) -> None:
    """Does nothing: static shapes are there from the start."""


def is_resource_variable(var: Any) -> bool:
    """Whether a variable is kept by a resource handle."""
    from opdock.graph.variables.resource_variable import ResourceVariable

    return isinstance(var, ResourceVariable)


def get_seed_or_none(graph: Graph | None = None) -> int | None:
    """The seed of a graph."""
    found = (graph or get_default_graph()).seed
    return None if found is None else int(found)


# ------------------------------------------------------------------------------------ shapes
def unknown_shape(rank: int | None = None, *, ndims: int | None = None) -> TensorShape:
    """A shape of unknown dimensions, and of unknown rank if none is given; `ndims` is its old name.

    Raises:
        ValueError: it is given by both names.
    """
    if rank is not None and ndims is not None:
        raise ValueError("Cannot specify both 'rank' and 'ndims'")
    rank = ndims if rank is None else rank
    return TensorShape(None if rank is None else (None,) * rank)


def scalar() -> TensorShape:
    """The shape of a scalar."""
    return TensorShape([])


def vector(length: Any) -> TensorShape:
    """The shape of a vector."""
    return TensorShape([length])


def matrix(rows: Any, cols: Any) -> TensorShape:
    """The shape of a matrix."""
    return TensorShape([rows, cols])


# ------------------------------------------------------------------------------------ others
def internal_convert_to_tensor(
    value: Any, dtype: Any = None, name: str | None = None, as_ref: bool = False,
    preferred_dtype: Any = None, ctx: Any = None,
) -> Tensor:  # fmt: skip
    """`tf.convert_to_tensor` that gives the reference to a variable that has one, if so asked."""
    if as_ref and hasattr(value, "_ref"):
        return value._ref()  # type: ignore[no-any-return]
    return convert_to_tensor(value, dtype, name, preferred_dtype)


def internal_convert_n_to_tensor(
    values: Sequence[Any], dtype: Any = None, name: str | None = None, as_ref: bool = False,
    preferred_dtype: Any = None, ctx: Any = None,
) -> list[Tensor]:  # fmt: skip
    """`internal_convert_to_tensor` of each, with numbers behind the name."""
    names = (None if name is None else f"{name}_{i}" for i in itertools.count())
    return [
        internal_convert_to_tensor(value, dtype, own, as_ref, preferred_dtype)
        for value, own in zip(values, names, strict=False)
    ]


class RegisterShape:
    """What decorated shape functions before ops had their own; gives back what it decorates."""

    def __init__(self, op_type: str) -> None:
        self.op_type = op_type

    def __call__(self, function: Any) -> Any:
        """The function as it is: nobody asks it."""
        return function


def list_local_devices(session_config: Any = None) -> list[Any]:
    """The devices that a session would find, with `name` and `device_type`."""
    from opdock.runtime.session import Session

    with Session(config=session_config) as session:
        return list(session.list_devices())


def register_symbolic_tensor_type(cls: type) -> type:
    """Has objects of a class, which convert to tensors, count as tensors; gives the class."""
    cls._is_tensor_like = True  # type: ignore[attr-defined]
    return cls


def get_build_info() -> dict[str, Any]:
    """What TensorFlow was built with, as it says it of itself: no device's own libraries."""
    return {"is_cuda_build": False, "is_rocm_build": False, "is_tensorrt_build": False}


def get_registered_ops() -> dict[str, Any]:
    """The OpDef of every op, by its type."""
    return {spec.name: spec.to_proto() for spec in all_ops()}
