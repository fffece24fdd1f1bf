"""L2Loss, InTopK and the elementwise losses: sigmoid, weighted and log-Poisson."""

from __future__ import annotations

import math
from typing import Any

from opdock import shapes
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.dispatch import extensible
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.nodes.scopes import name_scope
from opdock.ops.registry import Fails, Shape, ShapeSig, Traits, define_op
from opdock.ops.support import common_shapes
from opdock.ops.support.nn_util import emit, renamed, zeros_like

__all__ = [
    "in_top_k", "l2_loss", "log_poisson_loss", "sigmoid_cross_entropy_with_logits",
    "weighted_cross_entropy_with_logits",
]  # fmt: skip


# ---------------------------------------------------------------- L2Loss
l2_loss_op = define_op("L2Loss", "t: T -> output: T", "T: {half, bfloat16, float, double}")
l2_loss_op.declare(Traits(fails=Fails.NEVER))
l2_loss_op.shape(common_shapes.scalar)


@l2_loss_op.gradient
def _l2_loss_grad(op: Operation, grad: Tensor) -> Tensor:
    return emit("Mul", op.inputs[0], grad)  # type: ignore[no-any-return]


@l2_loss_op.decomposition
def _l2_loss_parts(sig: Any, t: Tensor) -> Tensor:
    flat = emit("Reshape", t, [-1])
    half = convert_to_tensor(0.5, t.dtype)
    return emit("Mul", emit("Sum", emit("Square", flat), [0]), half)  # type: ignore[no-any-return]


@extensible
def l2_loss(t: Any, name: str | None = None) -> Tensor:
    """Half the sum of squares: `sum(t ** 2) / 2`.

    Args:
        t: a floating-point tensor of any shape.
        name: a name for the operation.

    Returns:
        A scalar of the type of `t`.
    """
    return l2_loss_op(t, name=name)  # type: ignore[no-any-return]


# ---------------------------------------------------------------- InTopK
in_top_k_op = define_op(
    "InTopK", "predictions: float, targets: T -> precision: bool",
    "k: int, T: {int32, int64} = DT_INT32",
).not_differentiable()  # fmt: skip
in_top_k_v2_op = define_op(
    "InTopKV2", "predictions: float, targets: T, k: T -> precision: bool",
    "T: {int32, int64} = DT_INT32",
).not_differentiable()  # fmt: skip


@in_top_k_op.shape
@in_top_k_v2_op.shape
def _in_top_k_shape(sig: ShapeSig) -> Shape:
    predictions = shapes.with_rank(sig.shapes[0], 2)
    targets = shapes.with_rank(sig.shapes[1], 1)
    return (shapes.merge_dim(predictions[0], targets[0]),)


@extensible
def in_top_k(predictions: Any, targets: Any, k: Any, name: str | None = None) -> Tensor:
    """Whether each target is among the `k` largest predictions of its row.

    Classes that tie with the k-th place all count as in. A row whose target prediction is not
    finite, or whose target is out of range, gives False.

    Args:
        predictions: float32 [batch, classes].
        targets: int32 or int64 [batch] of class ids.
        k: how many of the largest predictions to look at.
        name: a name for the operation.

    Returns:
        bool [batch].
    """
    with name_scope(name, "in_top_k"):
        return in_top_k_v2_op(predictions, targets, k, name=name)  # type: ignore[no-any-return]


# ---------------------------------------------------------------- losses on logits
def _check_same_shape(names: tuple[str, str], first: Tensor, second: Tensor) -> None:
    if not shapes.is_compatible(first.raw_shape, second.raw_shape):
        raise ValueError(
            f"{names[0]} and {names[1]} must have the same shape ({first.shape} vs {second.shape})"
        )


@extensible
def sigmoid_cross_entropy_with_logits(
    _sentinel: Any = None, labels: Any = None, logits: Any = None, name: str | None = None
) -> Tensor:
    """Cross entropy of independent yes-or-no classes, elementwise.

    `max(x, 0) - x * z + log(1 + exp(-abs(x)))` for logits x and labels z, which neither
    overflows nor loses precision.

    Args:
        _sentinel: forces `labels` and `logits` to be named.
        labels: a tensor like `logits`, of values in [0, 1].
        logits: a floating-point tensor.
        name: a name for the operation.

    Returns:
        The elementwise losses, shaped like `logits`.

    Raises:
        ValueError: the shapes differ, or an argument is missing or not named.
    """
    ensure_named("sigmoid_cross_entropy_with_logits", _sentinel, labels, logits)
    with name_scope(name, "logistic_loss", [logits, labels]) as scope:
        logits = convert_to_tensor(logits, name="logits")
        labels = convert_to_tensor(labels, name="labels")
        _check_same_shape(("logits", "labels"), logits, labels)
        zeros = zeros_like(logits)
        positive = emit("GreaterEqual", logits, zeros)
        relu_logits = emit("Select", positive, logits, zeros)
        minus_abs = emit("Select", positive, emit("Neg", logits), logits)
        tail = emit("Log1p", emit("Exp", minus_abs))
        return emit("Add", relu_logits - logits * labels, tail, name=scope)  # type: ignore[no-any-return]


@extensible
def weighted_cross_entropy_with_logits(
    labels: Any = None, logits: Any = None, pos_weight: Any = None, name: str | None = None,
    targets: Any = None,
) -> Tensor:  # fmt: skip
    """`sigmoid_cross_entropy_with_logits` with the positive term multiplied by `pos_weight`.

    Args:
        labels: a tensor like `logits`.
        logits: a floating-point tensor.
        pos_weight: the weight of positive examples, a number or tensor.
        name: a name for the operation.
        targets: the deprecated name of `labels`.

    Returns:
        The elementwise losses, shaped like `logits`.

    Raises:
        ValueError: the shapes differ, or both names of the labels are given.
    """
    labels = renamed("labels", labels, "targets", targets)
    with name_scope(name, "logistic_loss", [logits, labels]) as scope:
        logits = convert_to_tensor(logits, name="logits")
        labels = convert_to_tensor(labels, name="labels")
        _check_same_shape(("logits", "labels"), logits, labels)
        # (1 - z) x + l (log(1 + exp(-|x|)) + max(-x, 0)) with l = 1 + (q - 1) z
        weight = 1 + (pos_weight - 1) * labels
        tail = emit("Log1p", emit("Exp", emit("Neg", emit("Abs", logits))))
        return emit(  # type: ignore[no-any-return]
            "Add",
            (1 - labels) * logits,
            weight * (tail + emit("Relu", emit("Neg", logits))),
            name=scope,
        )


@extensible
def log_poisson_loss(
    targets: Any, log_input: Any, compute_full_loss: bool = False, name: str | None = None
) -> Tensor:
    """Minus the log-likelihood of counts under a Poisson distribution: `exp(c) - z * c`.

    Args:
        targets: the observed counts z, a tensor like `log_input`.
        log_input: c, the log of the expected counts.
        compute_full_loss: whether to add Stirling's approximation of `log(z!)` where z > 1.
        name: a name for the operation.

    Returns:
        The elementwise losses, shaped like `log_input`.

    Raises:
        ValueError: the shapes differ.
    """
    with name_scope(name, "log_poisson_loss", [log_input, targets]):
        log_input = convert_to_tensor(log_input, name="log_input")
        targets = convert_to_tensor(targets, name="targets")
        _check_same_shape(("log_input", "targets"), log_input, targets)
        result = emit("Exp", log_input) - log_input * targets
        if not compute_full_loss:
            return result  # type: ignore[no-any-return]
        point_five = convert_to_tensor(0.5, targets.dtype)
        two_pi = convert_to_tensor(2 * math.pi, targets.dtype)
        stirling = (
            targets * emit("Log", targets) - targets + point_five * emit("Log", two_pi * targets)
        )
        one = convert_to_tensor(1, targets.dtype)
        in_range = emit(
            "LogicalAnd",
            emit("GreaterEqual", targets, zeros_like(targets)),
            emit("LessEqual", targets, one),
        )
        return result + emit("Select", in_range, zeros_like(targets), stirling)  # type: ignore[no-any-return]


def ensure_named(function: str, sentinel: Any, labels: Any, logits: Any) -> None:
    """Checks that labels and logits were both given, and by name.

    Raises:
        ValueError: they were not.
    """
    if sentinel is not None:
        raise ValueError(
            f"Only call `{function}` with named arguments (labels=..., logits=..., ...)"
        )
    if labels is None or logits is None:
        raise ValueError("Both labels and logits must be provided.")
