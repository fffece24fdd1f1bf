"""The floating-point operations of TF's ops, by the rules with which its profiler counts them.

They are a convention, not a measurement: a product and a sum count as two, an exponential of a
softmax as one, and ops that are not listed as nothing. Figures in papers are by this convention.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, Final

from opdock.api.graph_util import tensor_shape_from_node_def_name
from opdock.profiler.statistics import OpStats, RegisterStatistics

_Count = Callable[[Any, Any], int]

# Operations for each element of the first input.
_OF_INPUT: Final = {
    "AssignAdd": 1, "AssignSub": 1, "BiasAdd": 1, "Log": 1, "Neg": 1, "Reciprocal": 1, "Rsqrt": 2,
    "Softmax": 5, "Square": 1,
}  # fmt: skip
# For each element of the output.
_OF_OUTPUT: Final = {
    **dict.fromkeys(
        ("Add", "AddV2", "Equal", "Greater", "GreaterEqual", "Less", "LessEqual", "Maximum",
         "Minimum", "Mul", "NotEqual", "Pow", "RealDiv", "Sub"), 1,
    ),
    "RsqrtGrad": 4, "SquaredDifference": 2,
}  # fmt: skip
# What makes a result of each sum: the mean divides it.
_OF_REDUCTION: Final = {"ArgMax": 0, "ArgMin": 0, "BiasAddGrad": 0, "Mean": 1, "Sum": 0}


def _shape(graph: Any, name: str) -> tuple[int, ...]:
    shape = tensor_shape_from_node_def_name(graph, name)
    shape.assert_is_fully_defined()
    return tuple(shape.as_list())


def _size(graph: Any, name: str) -> int:
    return math.prod(_shape(graph, name))


def _of_input(each: int, graph: Any, node: Any) -> int:
    return each * _size(graph, node.input[0])


def _of_output(each: int, graph: Any, node: Any) -> int:
    return each * _size(graph, node.name)


def _of_reduction(last: int, graph: Any, node: Any) -> int:
    return _size(graph, node.input[0]) + (last - 1) * _size(graph, node.name)


def _l2_loss(graph: Any, node: Any) -> int:
    return 3 * _size(graph, node.input[0]) - 1


def _add_n(graph: Any, node: Any) -> int:
    terms = [name for name in node.input if not name.startswith("^")]
    return (len(terms) - 1) * _size(graph, terms[0]) if terms else 0


def _sizes(graph: Any, name: str, chosen: slice) -> int:
    """The product of some sizes of a tensor, which alone have to be known."""
    sizes = tensor_shape_from_node_def_name(graph, name).as_list()[chosen]
    if None in sizes:
        raise ValueError(f"The shape of {name} is not fully known: {sizes}")
    return math.prod(sizes)


def _product(transposed: str, graph: Any, node: Any) -> int:
    row = slice(-2, -1) if node.attr[transposed].b else slice(-1, None)
    return 2 * _sizes(graph, node.input[0], row) * _size(graph, node.name)


def _convolution(dimensions: int, graph: Any, node: Any) -> int:
    """Each output element is a sum over the first `dimensions` of the filter."""
    window = _sizes(graph, node.input[1], slice(dimensions))
    return 2 * window * _size(graph, node.name)


def _window(node: Any) -> int:
    return math.prod(node.attr["ksize"].list.i)


def _pool(graph: Any, node: Any) -> int:
    return _window(node) * _size(graph, node.name)


def _average_pool_gradient(graph: Any, node: Any) -> int:
    return 2 * _window(node) * _size(graph, node.input[1])


def _max_pool_gradient(graph: Any, node: Any) -> int:
    return (_window(node) + 1) * _size(graph, node.input[1])


def _convolution_gradient(images: str, weights: str, node: Any, graph: Any) -> int:
    """As many as the convolution itself takes, worked out from the images that went into it."""
    shape, filters = _shape(graph, images), _size(graph, weights)
    format_ = node.attr["data_format"].s or b"NHWC"
    strides: int = math.prod(node.attr["strides"].list.i)  # those of batch and channels are 1
    return 2 * math.prod(shape) * filters // (shape[format_.index(b"C")] * strides)


def _input_gradient(graph: Any, node: Any) -> int:
    return _convolution_gradient(node.name, node.input[1], node, graph)


def _filter_gradient(graph: Any, node: Any) -> int:
    return _convolution_gradient(node.input[0], node.name, node, graph)


_OTHERS: Final[dict[str, _Count]] = {
    "AddN": _add_n,
    "AvgPool": _pool,
    "AvgPoolGrad": _average_pool_gradient,
    **dict.fromkeys(("BatchMatMul", "BatchMatMulV2"), functools.partial(_product, "adj_x")),
    "Conv2D": functools.partial(_convolution, 3),
    "Conv2DBackpropFilter": _filter_gradient,
    "Conv2DBackpropInput": _input_gradient,
    "Conv3D": functools.partial(_convolution, 4),
    "DepthwiseConv2dNative": functools.partial(_convolution, 2),
    "Dilation2D": functools.partial(_convolution, 2),
    "L2Loss": _l2_loss,
    "MatMul": functools.partial(_product, "transpose_a"),
    "MaxPool": _pool,
    "MaxPoolGrad": _max_pool_gradient,
}


def _counts() -> dict[str, _Count]:
    tables = ((_OF_INPUT, _of_input), (_OF_OUTPUT, _of_output), (_OF_REDUCTION, _of_reduction))
    by_table = {
        op_type: functools.partial(rule, number)
        for table, rule in tables
        for op_type, number in table.items()
    }
    return {**by_table, **_OTHERS}


def _stats(count: _Count, graph: Any, node: Any) -> OpStats:
    return OpStats("flops", count(graph, node))


for _op_type, _count in _counts().items():
    RegisterStatistics(_op_type, "flops")(functools.partial(_stats, _count))
