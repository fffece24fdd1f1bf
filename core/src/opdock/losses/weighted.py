"""From elementwise losses and weights to one number."""

from __future__ import annotations

from typing import Any, ClassVar, Final

from opdock import dtypes
from opdock.docstrings import explained
from opdock.graph.nodes.collections import GraphKeys
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.dispatch import extensible
from opdock.graph.nodes.graph import get_default_graph
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.scopes import control_dependencies, name_scope
from opdock.losses.collection import add_loss
from opdock.ops.cast import cast
from opdock.ops.composed.weights_broadcast import assert_broadcastable, broadcast_weights
from opdock.ops.support.nn_util import emit, zeros_like

WORDS: Final = {
    "labels": "a tensor like `predictions`.",
    "predictions": "a tensor.",
    "logits": "a floating-point tensor, classes last.",
    "weights": "a number, or a tensor of the rank of `labels` whose dimensions are 1 or equal.",
    "scope": "a name for the scope of the operations.",
    "loss_collection": "the collection to add to, or None.",
    "reduction": "one of `tf.losses.Reduction`.",
    "returns": 'The loss in float32: a scalar, or shaped like `labels` for "none".',
    "raises": "ValueError: shapes do not fit, or an argument is None.",
}
"""What the arguments of the losses are."""


class Reduction:
    """How weighted losses become one loss."""

    NONE: ClassVar[str] = "none"
    """Keep them apart."""
    SUM: ClassVar[str] = "weighted_sum"
    """Their sum."""
    SUM_OVER_BATCH_SIZE: ClassVar[str] = "weighted_sum_over_batch_size"
    """Their sum over the number of losses."""
    MEAN: ClassVar[str] = "weighted_mean"
    """Their sum over the sum of the weights."""
    SUM_BY_NONZERO_WEIGHTS: ClassVar[str] = "weighted_sum_by_nonzero_weights"
    """Their sum over the number of weights that are not zero."""
    SUM_OVER_NONZERO_WEIGHTS: ClassVar[str] = SUM_BY_NONZERO_WEIGHTS
    """The old name of `SUM_BY_NONZERO_WEIGHTS`."""

    @classmethod
    def all(cls) -> tuple[str, ...]:
        """Every reduction."""
        return (
            cls.NONE, cls.SUM, cls.MEAN, cls.SUM_OVER_BATCH_SIZE, cls.SUM_OVER_NONZERO_WEIGHTS,
            cls.SUM_BY_NONZERO_WEIGHTS,
        )  # fmt: skip

    @classmethod
    def validate(cls, key: str) -> None:
        """Raises ValueError unless `key` is a reduction."""
        if key not in cls.all():
            raise ValueError(f"Invalid ReductionKey {key}.")


def safe_mean(losses: Tensor, count: Tensor) -> Tensor:
    """The sum of `losses` over `count`; 0 when `count` is 0."""
    return emit("DivNoNan", sum_all(losses), count, name="value")  # type: ignore[no-any-return]


def sum_all(tensor: Tensor) -> Tensor:
    """The sum over all dimensions."""
    from opdock.ops.reduce import reduce_sum

    total: Tensor = reduce_sum(tensor)
    return total


def outer_axes(tensor: Tensor) -> Any:
    """All dimensions but the first."""
    rank = tensor.shape.ndims
    if rank is not None:
        return list(range(1, rank))
    return emit("Range", 1, emit("Rank", tensor), 1)


def _count(losses: Tensor) -> Tensor:
    from opdock.ops.array import size

    with name_scope(None, "num_elements", [losses]) as scope:
        return cast(size(losses, name=scope), losses.dtype)  # type: ignore[no-any-return]


def count_present(losses: Tensor, weights: Any, per_batch: bool = False) -> Tensor:
    """How many losses have a weight that is not zero, in all or per batch entry."""
    if isinstance(weights, float) and weights != 0.0 and not per_batch:
        return _count(losses)
    with name_scope(None, "num_present", [losses, weights]) as scope:
        weights = cast(weights, dtypes.float32)
        is_zero = emit("Equal", weights, 0.0)
        present = emit("Select", is_zero, zeros_like(weights), emit("OnesLike", weights))
        present = broadcast_weights(present, losses)
        if per_batch:
            return emit("Sum", present, outer_axes(present), keep_dims=True, name=scope)  # type: ignore[no-any-return]
        from opdock.ops.reduce import reduce_sum

        total: Tensor = reduce_sum(present, name=scope)
        return total


@extensible
@explained(
    WORDS, losses="a tensor of losses.",
    weights="a number, or a tensor of the rank of `losses` whose dimensions are 1 or equal.",
    returns='The loss, of the type of `losses`: a scalar, or shaped like `losses` for "none".',
    raises="ValueError: `weights` does not fit, or the reduction is unknown.",
)  # fmt: skip
def compute_weighted_loss(
    losses: Any, weights: Any = 1.0, scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
) -> Tensor:  # fmt: skip
    """Weights losses, reduces them, and adds the result to a collection."""
    Reduction.validate(reduction)
    get_default_graph()._last_loss_reduction = reduction
    with (
        name_scope(scope, "weighted_loss", [losses, weights]),
        control_dependencies([assert_broadcastable(weights, losses)]),
    ):
        losses = convert_to_tensor(losses)
        weighted = emit("Mul", cast(losses, dtypes.float32), cast(weights, dtypes.float32))
        loss: Tensor = cast(_reduced(weighted, weights, reduction), losses.dtype)
        add_loss(loss, loss_collection)
        return loss


def _reduced(losses: Tensor, weights: Any, reduction: str) -> Tensor:
    if reduction == Reduction.NONE:
        return losses
    total = sum_all(losses)
    if reduction == Reduction.MEAN:
        factor = cast(weights, dtypes.float32)
        return safe_mean(total, sum_all(emit("Mul", emit("OnesLike", losses), factor)))
    if reduction == Reduction.SUM_BY_NONZERO_WEIGHTS:
        return safe_mean(total, count_present(losses, weights))
    if reduction == Reduction.SUM_OVER_BATCH_SIZE:
        return safe_mean(total, _count(losses))
    return total
