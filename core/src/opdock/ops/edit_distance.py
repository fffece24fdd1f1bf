"""The Levenshtein distance between the sequences of two sparse tensors."""

from __future__ import annotations

from typing import Any

from opdock.graph.nodes.composite import SparseTensor, SparseTensorValue
from opdock.graph.nodes.dispatch import extensible
from opdock.graph.nodes.operation import Tensor
from opdock.ops.registry import ShapeSig, define_op
from opdock.ops.support import array_util, sparse_shapes
from opdock.shapes import Shape

__all__ = ["edit_distance"]

edit_distance_op = define_op(
    "EditDistance",
    "hypothesis_indices: int64, hypothesis_values: T, hypothesis_shape: int64, "
    "truth_indices: int64, truth_values: T, truth_shape: int64 -> output: float",
    "normalize: bool = true, T: type",
).not_differentiable()


@edit_distance_op.shape
def _distance_shape(sig: ShapeSig) -> Shape:
    sparse_shapes.check(*sig.shapes[:3])
    sparse_shapes.check(*sig.shapes[3:])
    hypothesis, truth = array_util.const_ints(sig, 2), array_util.const_ints(sig, 5)
    if hypothesis is None or truth is None:
        return None
    if len(hypothesis) != len(truth):
        raise ValueError(
            "Num elements of hypothesis_shape does not match truth_shape: "
            f"{len(hypothesis)} vs. {len(truth)}"
        )
    return tuple(max(pair) for pair in zip(hypothesis[:-1], truth[:-1], strict=True))


@extensible
def edit_distance(
    hypothesis: Any, truth: Any, normalize: bool = True, name: str = "edit_distance"
) -> Tensor:
    """How many insertions, deletions and replacements lead from one sequence to another.

    Args:
        hypothesis: a SparseTensor, whose last dimension holds sequences.
        truth: a SparseTensor of the same type and rank.
        normalize: whether to divide by the length of the sequence in `truth`; if that is empty, the
            distance is infinite.
        name: a name for the operation.

    Returns:
        A float32 tensor of one dimension less.

    Raises:
        TypeError: an argument is no SparseTensor.
    """
    sides = []
    for what, side in (("Hypothesis", hypothesis), ("Truth", truth)):
        if not isinstance(side, (SparseTensor, SparseTensorValue)):
            raise TypeError(f"{what} must be a SparseTensor.")
        sides.append(SparseTensor.from_value(side))
    first, second = sides
    return edit_distance_op(  # type: ignore[no-any-return]
        first.indices, first.values, first.dense_shape, second.indices, second.values,
        second.dense_shape, normalize=normalize, name=name,
    )  # fmt: skip
