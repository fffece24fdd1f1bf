"""`tf.contrib.util`: constants and protobufs of tensors."""

from __future__ import annotations

from opdock.graph.nodes.constant_value import constant_value
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.io.tensor_proto import make_ndarray, make_tensor_proto

__all__ = ["constant_value", "convert_to_tensor", "make_ndarray", "make_tensor_proto"]
