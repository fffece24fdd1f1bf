"""Products with variables of the current scope, which cells and attention of contrib share."""

from __future__ import annotations

from typing import Any

from opdock.graph.nodes.operation import Tensor
from opdock.graph.variables.initializers import constant_initializer
from opdock.graph.variables.variable_scope import get_variable, get_variable_scope, variable_scope
from opdock.ops.bias import bias_add
from opdock.ops.joining import concat
from opdock.ops.linalg import matmul
from opdock.util import nest

__all__ = ["Linear", "known_width", "linear", "sharded_kernel"]


def known_width(inputs: Any) -> int:
    """The second dimension of a tensor [batch, size]; ValueError where it is not known."""
    width = inputs.shape.with_rank(2).as_list()[1]
    if width is None:
        raise ValueError("Could not infer input size from inputs.get_shape()[-1]")
    return int(width)


class Linear:
    """`args @ kernel + bias`, whose variables are made in the scope of the first place.

    Args:
        args: a tensor [batch, n], or several, whose columns are joined.
        output_size: the number of columns of the result.
        build_bias: whether there is a bias.
        bias_initializer: makes the bias; zeros by default.
        kernel_initializer: makes the kernel.

    Raises:
        ValueError: there are no arguments, or their shapes are not known or not [batch, n].
    """

    def __init__(
        self, args: Any, output_size: int, build_bias: bool, bias_initializer: Any = None,
        kernel_initializer: Any = None,
    ) -> None:  # fmt: skip
        if args is None or (nest.is_sequence(args) and not args):
            raise ValueError("`args` must be specified")
        parts = list(args) if nest.is_sequence(args) else [args]
        shapes = [part.shape for part in parts]
        width = 0
        for shape in shapes:
            if shape.ndims != 2:
                raise ValueError(f"linear is expecting 2D arguments: {shapes}")
            if shape.raw[1] is None:
                raise ValueError(
                    f"linear expects shape[1] to be provided for shape {shape}, but saw "
                    f"{shape.dims[1]}"
                )
            width += shape.raw[1]
        dtype = parts[0].dtype.base_dtype
        with variable_scope(get_variable_scope()) as outer:
            self._kernel = get_variable(
                "kernel", [width, output_size], dtype, initializer=kernel_initializer
            )
            self._bias = None
            if build_bias:
                with variable_scope(outer) as inner:
                    inner.set_partitioner(None)  # a vector of a few numbers is not divided
                    zeros = constant_initializer(0.0, dtype=dtype)
                    self._bias = get_variable(
                        "bias", [output_size], dtype, initializer=bias_initializer or zeros
                    )

    def __call__(self, args: Any) -> Tensor:
        """The product for other arguments of the same shapes."""
        parts = list(args) if nest.is_sequence(args) else [args]
        joined = parts[0] if len(parts) == 1 else concat(parts, 1)
        product = matmul(joined, self._kernel)
        return product if self._bias is None else bias_add(product, self._bias)


def linear(
    args: Any, output_size: int, bias: bool, bias_initializer: Any = None,
    kernel_initializer: Any = None,
) -> Tensor:  # fmt: skip
    """`Linear` of these arguments, for one place; see there."""
    return Linear(args, output_size, bias, bias_initializer, kernel_initializer)(args)


def sharded_kernel(name: str, rows: int, columns: int, dtype: Any, count: int) -> Any:
    """A kernel whose rows are divided among variables `name_0`, `name_1`, ..."""
    if count > rows:
        raise ValueError(f"Too many shards: shape={[rows, columns]}, num_shards={count}")
    sizes = [rows // count + (i < rows % count) for i in range(count)]
    parts = [get_variable(f"{name}_{i}", [r, columns], dtype) for i, r in enumerate(sizes)]
    return parts[0] if count == 1 else concat(parts, 0, name=f"{name}/concat")
