"""TF's place of TensorProtos and of values known while the graph is built."""

from opdock.graph.nodes.constant_value import constant_value, constant_value_as_shape
from opdock.graph.nodes.operation import is_tensor
from opdock.io.tensor_proto import make_ndarray, make_tensor_proto

MakeNdarray = make_ndarray

__all__ = [
    "MakeNdarray", "constant_value", "constant_value_as_shape", "is_tensor", "make_ndarray",
    "make_tensor_proto",
]  # fmt: skip
