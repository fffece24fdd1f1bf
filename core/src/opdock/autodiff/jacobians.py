"""Jacobians as tensors: what TF has in its internal `parallel_for.gradients`.

The gradient of one number after the other, in a loop.
"""

from __future__ import annotations

from typing import Any

from opdock.autodiff.gradients import gradients
from opdock.graph.nodes.operation import Tensor
from opdock.ops.arithmetic import multiply
from opdock.ops.array import reshape, shape
from opdock.ops.composed.functional import map_fn
from opdock.ops.fill import range
from opdock.ops.gather import gather
from opdock.ops.identity import stop_gradient
from opdock.ops.joining import concat
from opdock.ops.matrix import transpose
from opdock.shapes import as_dimension
from opdock.util import nest

__all__ = ["batch_jacobian", "hessian_vector_product", "jacobian"]


def jacobian(
    output: Tensor, inputs: Any, use_pfor: bool = True, parallel_iterations: int | None = None
) -> Any:
    """The derivatives of each number of a tensor.

    Args:
        output: the tensor.
        inputs: what to differentiate by: a tensor or nested ones.
        use_pfor, parallel_iterations: accepted for TF's signature; it is a loop in any case.

    Returns:
        In the structure of `inputs`, tensors whose shape is that of the output and then that of the
        input; None for those that the output does not depend on.
    """
    flat = nest.flatten(inputs)
    numbers = reshape(output, [-1])
    found = _each(numbers, flat, 0)
    for i, (x, rows) in enumerate(zip(flat, found, strict=True)):
        if rows is not None:
            whole = reshape(rows, concat([shape(output), shape(x)], 0))
            whole.set_shape(output.shape.concatenate(x.shape))
            found[i] = whole
    return nest.pack_sequence_as(inputs, found)


def batch_jacobian(
    output: Tensor, inp: Tensor, use_pfor: bool = True, parallel_iterations: int | None = None
) -> Tensor | None:
    """The derivatives of each number of an example, by the example's own input.

    Args:
        output: [batch, ...], where an example depends on its own input alone.
        inp: [batch, ...].
        use_pfor, parallel_iterations: accepted for TF's signature; it is a loop in any case.

    Returns:
        [batch, ...output, ...input], or None if the output does not depend on the input.

    Raises:
        ValueError: the first dimensions differ.
    """
    if not as_dimension(output.shape[0]).is_compatible_with(inp.shape[0]):
        raise ValueError(
            f"Need first dimension of output shape ({output.shape}) and inp shape ({inp.shape}) "
            "to match."
        )
    examples = reshape(output, concat([shape(output)[:1], [-1]], 0))
    (rows,) = _each(examples, [inp], 1)
    if rows is None:
        return None
    count = shape(examples)
    rows = transpose(reshape(rows, [count[1], count[0], -1]), [1, 0, 2])
    whole = reshape(rows, concat([shape(output), shape(inp)[1:]], 0))
    whole.set_shape(output.shape.concatenate(inp.shape[1:]))
    return whole


def _each(numbers: Tensor, inputs: list[Any], axis: int) -> list[Any]:
    """The gradients of what stands in each place of an axis, stacked; None where there are none."""
    depends = [g is not None for g in gradients(numbers, inputs)]
    reached = [x for x, does in zip(inputs, depends, strict=True) if does]
    if not reached:
        return [None] * len(inputs)

    def row(i: Any) -> list[Any]:
        return gradients(gather(numbers, i, axis=axis), reached)

    kinds = [x.dtype.base_dtype for x in reached]
    found = iter(map_fn(row, range(shape(numbers)[axis]), dtype=kinds, infer_shape=False))
    return [next(found) if does else None for does in depends]


def hessian_vector_product(ys: Any, xs: list[Any], v: list[Any]) -> list[Any]:
    """The Hessian of the sum of `ys` times a vector, which costs as much as two gradients.

    Args:
        ys: a tensor or a list of tensors.
        xs: the tensors that it is differentiated by.
        v: the vector, in parts that have the shapes of `xs`; nothing flows back into them.

    Returns:
        A list of tensors, with the shapes of `xs`; None for those that no gradient depends on.

    Raises:
        ValueError: `xs` and `v` differ in length.
    """
    if len(xs) != len(v):
        raise ValueError("xs and v must have the same length.")
    products = [
        multiply(gradient, stop_gradient(part))
        for gradient, part in zip(gradients(ys, xs), v, strict=True)
        if gradient is not None
    ]
    return gradients(products, xs)
