"""What a network consists of, as text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from opdock import dtypes
from opdock.contrib.specs.evaluation import create_net
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.ops.identity import placeholder
from opdock.shapes import TensorShape

__all__ = [
    "tf_left_split", "tf_num_params", "tf_parameter_iter", "tf_parameter_summary", "tf_print",
    "tf_spec_print", "tf_spec_structure", "tf_spec_summary", "tf_structure",
]  # fmt: skip

_SHORT: Final = {
    "BiasAdd": "biasadd", "Const": "_", "Conv2D": "conv", "MatMul": "dot", "Placeholder": "_",
    "Sigmoid": "sig", "Variable": "var",
}  # fmt: skip


def _taken_apart(x: Tensor | Operation, none: Any) -> tuple[Operation, Any]:
    """An operation, and the shape of the tensor if it was one."""
    return (x.op, x.get_shape().as_list()) if isinstance(x, Tensor) else (x, none)


def _is_unrolled(op: Operation) -> bool:
    """Whether an operation is of a recurrent layer whose steps tell nothing more."""
    return "/HorizontalLstm/" in op.name


def tf_structure(
    x: Tensor | Operation, include_shapes: bool = False, finished: set[Operation] | None = None
) -> str:
    """The types of operations that lead to one, each after its inputs, for tests to compare.

    Args:
        x: an operation or a tensor.
        include_shapes: whether the shapes of tensors are told.
        finished: operations that have been told; only "<>" stands for them.
    """
    finished = set() if finished is None else finished
    op, shape = _taken_apart(x, [])
    if op in finished:
        return " <>"
    finished.add(op)
    result = ""
    if not _is_unrolled(op):
        result = "".join(tf_structure(y, include_shapes, finished) for y in op.inputs)
    if include_shapes:
        result += f" {shape}"
    if op.type != "Identity":
        result += " " + _SHORT.get(op.type, op.type.lower())
    return result


def tf_print(
    x: Tensor | Operation, depth: int = 0, finished: set[Operation] | None = None,
    printer: Callable[[str], Any] = print,
) -> None:  # fmt: skip
    """Prints the operations that lead to one, each before its inputs.

    Args:
        x: an operation or a tensor.
        depth: how far lines begin from the left, in steps of two.
        finished: operations that have been printed; their inputs are not again.
        printer: what takes the lines.
    """
    finished = set() if finished is None else finished
    op, shape = _taken_apart(x, "")
    if op.type == "Identity":
        op = op.inputs[0].op
    told = op in finished
    name = f"<{op.name}>" if told else op.name
    printer(f"{'  ' * depth}{name} {op.type} {shape}")
    finished.add(op)
    if not told and not _is_unrolled(op):
        for y in op.inputs:
            tf_print(y, depth + 1, finished, printer)


def tf_num_params(x: Tensor | Operation) -> int:
    """How many numbers the variables that lead to an operation or a tensor hold.

    One to which several ways lead counts with each, one whose shape is not known with none.
    """
    op, _ = _taken_apart(x, None)
    if op.type in ("Variable", "VariableV2", "VarHandleOp"):
        return TensorShape(op.get_attr("shape")).num_elements() or 0
    return sum(tf_num_params(y) for y in op.inputs)


def tf_left_split(op: Operation) -> tuple[Tensor | None, list[Tensor]]:
    """The first input of an operation, or None, and the others."""
    if not op.inputs:
        return None, []
    # The oldest op that joins has the dimension first.
    first = 1 if op.type == "Concat" else 0
    return op.inputs[first], list(op.inputs[first + 1 :])


def tf_parameter_iter(x: Any) -> Iterator[tuple[str, int, Any]]:
    """Names, parameters and shapes along the first inputs; an operation has those of its others."""
    while x is not None:
        op, shape = _taken_apart(x, "")
        x, others = tf_left_split(op)
        yield op.name, sum(tf_num_params(y) for y in others), shape


def _combined(rows: Iterable[tuple[str, int, Any]]) -> list[tuple[str, int, Any]]:
    """Neighbours of one outermost scope as one row, with the shape of the first."""
    found: list[tuple[str, int, Any]] = []
    for name, total, shape in rows:
        scope = name.partition("/")[0]
        if found and found[-1][0] == scope:
            found[-1] = (scope, found[-1][1] + total, found[-1][2])
        else:
            found.append((scope, total, shape))
    return found


def tf_parameter_summary(
    x: Tensor | Operation, printer: Callable[[str], Any] = print, combine: bool = True
) -> None:
    """Prints how many parameters there are on the way to an operation, first ones first.

    Args:
        x: an operation or a tensor.
        printer: what takes the lines.
        combine: whether an outermost scope has one line.
    """
    rows = list(tf_parameter_iter(x))
    for name, total, shape in reversed(_combined(rows) if combine else rows):
        printer(f"{total:10d} {name:<20} {shape}")


def _made(spec: str, inputs: Any, input_shape: Any, input_type: Any) -> Any:
    return create_net(spec, placeholder(input_type, input_shape) if inputs is None else inputs)


def tf_spec_structure(
    spec: str, inputs: Any = None, input_shape: Any = None, input_type: Any = dtypes.float32
) -> str:
    """The structure of the network of a spec; see `tf_structure`.

    Args:
        spec: see `eval_spec`.
        inputs: the tensor that it takes; a placeholder when None,
        input_shape: of this shape
        input_type: and this type.
    """
    return tf_structure(_made(spec, inputs, input_shape, input_type)).strip()


def tf_spec_summary(
    spec: str, inputs: Any = None, input_shape: Any = None, input_type: Any = dtypes.float32
) -> None:
    """Prints the parameters of the network of a spec; see `tf_spec_structure`."""
    tf_parameter_summary(_made(spec, inputs, input_shape, input_type))


def tf_spec_print(
    spec: str, inputs: Any = None, input_shape: Any = None, input_type: Any = dtypes.float32
) -> None:
    """Prints the operations of the network of a spec; see `tf_spec_structure`."""
    tf_print(_made(spec, inputs, input_shape, input_type))
