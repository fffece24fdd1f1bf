"""Random tensors and losses as Keras asks for them."""

from __future__ import annotations

from typing import Any

import numpy as np

from opdock import dtypes
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.operation import Tensor
from opdock.keras_base.settings import epsilon, floatx
from opdock.ops import random
from opdock.ops.arithmetic import maximum, minimum
from opdock.ops.array import reshape
from opdock.ops.array import shape as shape_of
from opdock.ops.cast import cast
from opdock.ops.clip import clip_by_value
from opdock.ops.elementary import log
from opdock.ops.fill import ones, zeros
from opdock.ops.loss import sigmoid_cross_entropy_with_logits
from opdock.ops.matrix import transpose
from opdock.ops.reduce import reduce_sum
from opdock.ops.select import where
from opdock.ops.xent import (
    softmax_cross_entropy_with_logits_v2,
    sparse_softmax_cross_entropy_with_logits,
)

__all__ = [
    "binary_crossentropy", "categorical_crossentropy", "hard_sigmoid", "random_binomial",
    "random_normal", "random_uniform", "sparse_categorical_crossentropy", "truncated_normal",
]  # fmt: skip


def _seed(seed: int | None) -> int:
    return int(np.random.randint(10**7)) if seed is None else seed  # noqa: NPY002 - Keras' seed


def random_normal(
    shape: Any, mean: float = 0.0, stddev: float = 1.0, dtype: Any = None, seed: int | None = None
) -> Any:
    """Normal numbers; without a seed it is drawn from NumPy's state."""
    return random.random_normal(shape, mean, stddev, dtype or floatx(), _seed(seed))


def random_uniform(
    shape: Any, minval: float = 0.0, maxval: float = 1.0, dtype: Any = None,
    seed: int | None = None,
) -> Any:  # fmt: skip
    """Uniform numbers; without a seed it is drawn from NumPy's state."""
    return random.random_uniform(shape, minval, maxval, dtype or floatx(), _seed(seed))


def truncated_normal(
    shape: Any, mean: float = 0.0, stddev: float = 1.0, dtype: Any = None, seed: int | None = None
) -> Any:
    """Normal numbers up to two deviations away; without a seed it is drawn from NumPy's state."""
    return random.truncated_normal(shape, mean, stddev, dtype or floatx(), _seed(seed))


def random_binomial(shape: Any, p: float = 0.0, dtype: Any = None, seed: int | None = None) -> Any:
    """Ones with this probability, else zeros; without a seed it is drawn from NumPy's state."""
    kind = dtype or floatx()
    drawn = random.random_uniform(shape, dtype=kind, seed=_seed(seed))
    return where(drawn <= p, ones(shape, kind), zeros(shape, kind))


def hard_sigmoid(x: Any) -> Any:
    """The sigmoid as a line from 0 at -2.5 to 1 at 2.5."""
    return minimum(maximum(0.2 * x + 0.5, 0.0), 1.0)


def _logits_of(output: Any, op_type: str) -> Any:
    """What an operation of this type made the output of, or None.

    The loss of that is the more exact one.
    """
    if isinstance(output, Tensor) and output.op.type == op_type:
        return output.op.inputs[0]
    return None


def _inside(output: Any) -> Any:
    """Probabilities that are neither 0 nor 1."""
    return clip_by_value(output, epsilon(), 1.0 - epsilon())


def categorical_crossentropy(
    target: Any, output: Any, from_logits: bool = False, axis: int = -1
) -> Any:
    """The cross entropy of distributions along an axis."""
    target, output = convert_to_tensor(target), convert_to_tensor(output)
    logits = output if from_logits else _logits_of(output, "Softmax")
    if logits is not None:
        return softmax_cross_entropy_with_logits_v2(labels=target, logits=logits, axis=axis)
    output = output / reduce_sum(output, axis, keepdims=True)
    return -reduce_sum(target * log(_inside(output)), axis)


def sparse_categorical_crossentropy(
    target: Any, output: Any, from_logits: bool = False, axis: int = -1
) -> Any:
    """The cross entropy of classes and distributions along an axis.

    Raises:
        ValueError: the axis is not the last one, and the rank of `output` is unknown.
    """
    output = convert_to_tensor(output)
    rank = output.shape.ndims
    if rank is None and axis != -1:
        raise ValueError(
            f"Cannot compute sparse categorical crossentropy with `axis={axis}` on an output "
            "tensor with unknown rank"
        )
    logits = output if from_logits else _logits_of(output, "Softmax")
    if logits is None:
        logits = log(_inside(output))
    if rank is not None and axis % rank != rank - 1:
        order = [d for d in range(rank) if d != axis % rank]
        output, logits = (transpose(t, [*order, axis % rank]) for t in (output, logits))
    target = cast(target, dtypes.int64)
    flat = sparse_softmax_cross_entropy_with_logits(
        labels=reshape(target, [-1]), logits=reshape(logits, [-1, shape_of(logits)[-1]])
    )
    if rank is not None and rank < 2:
        return flat
    found = reshape(flat, shape_of(output)[:-1])
    found.set_shape(output.shape[:-1])
    return found


def binary_crossentropy(target: Any, output: Any, from_logits: bool = False) -> Any:
    """The cross entropy of probabilities, each by itself."""
    target, output = convert_to_tensor(target), convert_to_tensor(output)
    logits = output if from_logits else _logits_of(output, "Sigmoid")
    if logits is not None:
        return sigmoid_cross_entropy_with_logits(labels=target, logits=logits)
    output = _inside(output)
    found = target * log(output + epsilon()) + (1 - target) * log(1 - output + epsilon())
    return -found
