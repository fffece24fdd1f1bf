"""The paths of a beam search, from what each step chose and where it came from."""

from __future__ import annotations

from typing import Any

from opdock import shapes
from opdock.graph.nodes.operation import Tensor
from opdock.ops.registry import ShapeSig, define_op
from opdock.ops.support import array_util
from opdock.shapes import Shape

__all__: list[str] = []  # `tf.contrib.seq2seq` has it

gather_tree_op = define_op(
    "GatherTree",
    "step_ids: T, parent_ids: T, max_sequence_lengths: int32, end_token: T -> beams: T",
    "T: {int32}",
).not_differentiable()


@gather_tree_op.shape
def _gather_tree_shape(sig: ShapeSig) -> Shape:
    step_ids = shapes.with_rank(sig.shapes[0], 3)
    found = shapes.merge(step_ids, shapes.with_rank(sig.shapes[1], 3))
    lengths = array_util.vector_length(sig.shapes[2])
    shapes.with_rank(sig.shapes[3], 0)
    assert found is not None
    return (found[0], shapes.merge_dim(found[1], lengths), found[2])


def gather_tree(
    step_ids: Any, parent_ids: Any, max_sequence_lengths: Any, end_token: Any,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """Walks from the last step of each beam back to the first, and gives the ids on the way.

    Args:
        step_ids: an int32 tensor [time, batch, beams]: what each beam chose at each step.
        parent_ids: the same shape: the beam of the step before that each grew from.
        max_sequence_lengths: an int32 vector [batch]: the step at which to begin.
        end_token: a scalar; what stands behind the end of a path, and behind its first occurrence.
        name: a name for the operation.

    Returns:
        A tensor of the shape of `step_ids`.

    Raises:
        InvalidArgumentError: a shape does not fit, or a parent is no beam.
    """
    found: Tensor = gather_tree_op(step_ids, parent_ids, max_sequence_lengths, end_token, name=name)
    return found
