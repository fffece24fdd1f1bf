"""What a node of a GraphDef does to windows of images."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import opdock as tf

__all__ = ["get_layer_params"]

_CONVOLUTIONS: Final = frozenset({"Conv2D", "DepthwiseConv2dNative"})
_POOLS: Final = frozenset({"AvgPool", "MaxPool", "MaxPoolV2"})
# Each element of what they give comes from one place of what they take.
_ELEMENTWISE: Final = frozenset(
    {
        "Add", "AddV2", "BiasAdd", "Cast", "Ceil", "ConcatV2", "Const", "Floor", "FusedBatchNorm",
        "FusedBatchNormV2", "FusedBatchNormV3", "GreaterEqual", "Identity", "LRN", "Log", "Mul",
        "Pow", "ReadVariableOp", "RealDiv", "Relu", "Relu6", "Round", "Rsqrt", "Softplus", "Sub",
        "VarHandleOp", "VariableV2",
    }
)  # fmt: skip


class _Windows(NamedTuple):
    """Along one dimension; paddings are None where they depend on a size that is not known."""

    size: Any
    stride: Any
    padding: Any  # before the first element
    total_padding: Any


def get_layer_params(
    node: Any, name_to_node: Mapping[str, Any], input_resolution: Sequence[Any] | None = None,
    force: bool = False,
) -> tuple[Any, ...]:  # fmt: skip
    """The windows of a convolution, a pool or a padding; of one element where there are none.

    Args:
        node: a NodeDef.
        name_to_node: the graph's nodes by name.
        input_resolution: height and width of what it takes, if they are known.
        force: whether nodes that are not known have None for everything.

    Returns:
        Sizes in x and y, strides in x and y, paddings before x and y, all paddings of x and y.
        Paddings are None where they depend on a resolution that is not known.

    Raises:
        ValueError: the node is not known, or what says its sizes is no constant.
    """
    height, width = input_resolution or (None, None)
    if node.op in _CONVOLUTIONS or node.op in _POOLS:
        rows, columns = _sizes(node, name_to_node)
        down, right = _strides(node, name_to_node)
        y, x = _windows(node, rows, down, height), _windows(node, columns, right, width)
    elif node.op == "Pad":
        y, x = _padded(node, name_to_node)
    elif node.op in _ELEMENTWISE:
        y = x = _Windows(1, 1, 0, 0)
    elif force:
        y = x = _Windows(None, None, None, None)
    else:
        raise ValueError(f"Unknown layer for operation '{node.name}': {node.op}")
    return (
        x.size, y.size, x.stride, y.stride, x.padding, y.padding, x.total_padding, y.total_padding
    )  # fmt: skip


def _constant(name: str, name_to_node: Mapping[str, Any], of: Any) -> Any:
    node = name_to_node[name.partition(":")[0]]
    if node.op != "Const":
        raise ValueError(f"{of.op} {of.name}: {name} is not Const but {node.op}")
    return tf.make_ndarray(node.attr["value"].tensor)


def _of_rows_and_columns(node: Any, what: str, values: Any) -> tuple[int, int]:
    """The two in the middle of four numbers."""
    batch, y, x, channels = (int(value) for value in values)
    if batch != 1:
        raise ValueError(f"pool {what} for first dim is not 1 in {node.name}")
    if channels != 1:
        raise ValueError(f"pool {what} for last dim is not 1 in {node.name}")
    return y, x


def _strides(node: Any, name_to_node: Mapping[str, Any]) -> tuple[int, int]:
    if node.op == "MaxPoolV2":
        _, y, x, _ = _constant(node.input[2], name_to_node, node)
        return int(y), int(x)
    _, y, x, _ = node.attr["strides"].list.i
    return int(y), int(x)


def _sizes(node: Any, name_to_node: Mapping[str, Any]) -> tuple[int, int]:
    if node.op == "MaxPoolV2":
        return _of_rows_and_columns(node, "ksize", _constant(node.input[1], name_to_node, node))
    if node.op in _POOLS:
        return _of_rows_and_columns(node, "ksize", node.attr["ksize"].list.i)
    name = node.input[1].partition(":")[0]
    # Through what reads a variable to the variable, or to the constant that it became.
    while name_to_node[name].op in ("Identity", "ReadVariableOp"):
        name = name_to_node[name].input[0].partition(":")[0]
    weights = name_to_node[name]
    if weights.op == "Const":
        shape = weights.attr["value"].tensor.tensor_shape
    elif weights.op in ("VariableV2", "VarHandleOp"):
        shape = weights.attr["shape"].shape
    else:
        raise ValueError(f"Weight layer {name} is not a variable or Const: {weights.op}")
    if len(shape.dim) != 4:
        raise ValueError(
            f"Weight layer {name} does not have rank 4. Instead, it has: {len(shape.dim)}"
        )
    return shape.dim[0].size, shape.dim[1].size


def _windows(node: Any, size: int, stride: int, resolution: int | None) -> _Windows:
    padding = node.attr["padding"].s
    if padding == b"VALID":
        return _Windows(size, stride, 0, 0)
    if padding != b"SAME":
        raise ValueError(f"Invalid padding operation {padding!r}")
    if resolution is not None:
        total = max(size - (resolution % stride or stride), 0)
        return _Windows(size, stride, total // 2, total)
    if size == 1 or stride == 1:
        return _Windows(size, stride, (size - 1) // 2, size - 1)
    if stride == 2 and size % 2 == 0:
        # One element more or less is put behind.
        return _Windows(size, stride, (size - 1) // 2, None)
    tf.logging.warning(
        "The padding of %s depends on the size of images. Say it as input_resolution to have "
        "paddings checked.", node.name,
    )  # fmt: skip
    return _Windows(size, stride, None, None)


def _padded(node: Any, name_to_node: Mapping[str, Any]) -> tuple[_Windows, _Windows]:
    paddings = _constant(node.input[1], name_to_node, node).tolist()
    batch, *space, channels = paddings
    if any(batch):
        raise ValueError("padding is not zero for first tensor dim")
    if any(channels):
        raise ValueError("padding is not zero for last tensor dim")
    y, x = (_Windows(1, 1, before, before + after) for before, after in space)
    return y, x
