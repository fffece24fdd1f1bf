"""TF's place of static shapes."""

from opdock.shapes import Dimension, TensorShape, as_dimension, dimension_value, unknown_shape
from opdock.shapes import as_tensor_shape as as_shape

__all__ = [
    "Dimension", "TensorShape", "as_dimension", "as_shape", "dimension_value", "unknown_shape",
]  # fmt: skip
