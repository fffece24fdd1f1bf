"""`tf.contrib.kernel_methods`: features whose products are about a kernel's, and a loss for them.

Its estimator stood on those of `tf.contrib.learn`, which are not here.
"""

from __future__ import annotations

import abc
import math
from typing import Any

import numpy as np

import opdock as tf
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.operation import Tensor
from opdock.losses import Reduction

__all__ = [
    "DenseKernelMapper", "InvalidShapeError", "RandomFourierFeatureMapper",
    "sparse_multiclass_hinge_loss",
]  # fmt: skip


class InvalidShapeError(Exception):
    """A tensor has another shape than a mapper takes."""


class DenseKernelMapper(abc.ABC):
    """Maps dense features to those of a kernel."""

    @abc.abstractmethod
    def map(self, input_tensor: Tensor) -> Tensor:
        """The features [examples, output_dim] of a matrix [examples, features]."""

    @property
    @abc.abstractmethod
    def name(self) -> str:
        """The mapper's name."""

    @property
    @abc.abstractmethod
    def output_dim(self) -> int:
        """How many features it gives."""


class RandomFourierFeatureMapper(DenseKernelMapper):
    """Features whose products are about the Gaussian kernel exp(-|x - y|^2 / (2 stddev^2)).

    They are cosines of random projections (Rahimi and Recht, 2007); the more, the nearer.

    Args:
        input_dim: how many features there are.
        output_dim: how many it gives.
        stddev: the kernel's width.
        seed: projections of one seed are the same.
        name: the mapper's name.
    """

    def __init__(
        self, input_dim: int, output_dim: int, stddev: float = 1.0, seed: int = 1,
        name: str | None = None,
    ) -> None:  # fmt: skip
        self._input_dim, self._output_dim = input_dim, output_dim
        self._stddev, self._seed, self._name = stddev, seed, name

    @property
    def name(self) -> str:
        """The mapper's name; a number of its own by default."""
        return self._name or str(id(self))

    @property
    def input_dim(self) -> int:
        """How many features there are."""
        return self._input_dim

    @property
    def output_dim(self) -> int:
        """How many it gives."""
        return self._output_dim

    def map(self, input_tensor: Tensor) -> Tensor:
        """The features [examples, output_dim] of a matrix [examples, input_dim].

        Raises:
            InvalidShapeError: no such matrix.
        """
        sizes = input_tensor.shape.as_list()
        if len(sizes) != 2:
            raise InvalidShapeError(
                f"The shape of the tensor should be 2. Got {len(sizes)} instead."
            )
        if sizes[1] != self._input_dim:
            raise InvalidShapeError(
                f"Invalid dimension: expected {self._input_dim} input features, got {sizes[1]} "
                "instead."
            )
        # NumPy's older generator, as in TF: the same seed gives the same features.
        drawn = np.random.RandomState(self._seed)
        turns = drawn.normal(scale=1.0 / self._stddev, size=[self._input_dim, self._output_dim])
        phases = drawn.uniform(low=0.0, high=2 * np.pi, size=[self._output_dim])
        angles = tf.matmul(input_tensor, tf.constant(turns, tf.float32))
        cosines: Tensor = tf.cos(angles + tf.constant(phases, tf.float32))
        return math.sqrt(2.0 / self._output_dim) * cosines


def sparse_multiclass_hinge_loss(
    labels: Tensor,
    logits: Tensor,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: str | None = tf.GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
) -> Tensor:
    """By how much another class comes nearer than 1 to the right one, or is above it.

    Args:
        labels: the right classes, int32 or int64 of shape [examples] or [examples, 1].
        logits: a matrix [examples, classes].
        weights: a scalar, or one for each example.
        scope: a name for the operations.
        loss_collection: the collection for the loss.
        reduction: how the losses of examples become one.

    Raises:
        ValueError: a shape or a type is another one.
        InvalidArgumentError: when it runs, a label is no class.
    """
    with tf.name_scope(scope, "sparse_multiclass_hinge_loss", (logits, labels)) as name:
        _check_rank("logits", logits, (2,), "rank 2 ([batch_size, num_classes])")
        if labels.dtype not in (tf.int32, tf.int64):
            raise ValueError(
                f"Invalid dtype for labels: {labels.dtype}. Acceptable dtypes: int32 and int64"
            )
        either = "rank 1 ([batch_size]) or 2 ([batch_size, 1])"
        _check_rank("labels", labels, (1, 2), either)
        logits = tf.cast(logits, tf.float32)
        classes = tf.shape(logits)[1]
        with tf.control_dependencies([tf.assert_less(labels, tf.cast(classes, labels.dtype))]):
            labels = tf.reshape(labels, [-1])
        weights = convert_to_tensor(weights)
        _check_rank("non-scalar weights", weights, (0, 1, 2), either)
        if weights.shape.ndims:
            weights = tf.reshape(weights, [-1])
            weights.shape.assert_is_compatible_with(labels.shape)
        right = tf.one_hot(labels, classes)
        of_right = tf.expand_dims(tf.gather(logits, labels, batch_dims=1), 1)
        above = tf.nn.relu(logits - of_right + (1.0 - right))
        loss: Tensor = tf.losses.compute_weighted_loss(
            tf.reduce_max(above, axis=1), weights, name, loss_collection, reduction=reduction
        )
        return loss


def _check_rank(what: str, tensor: Tensor, allowed: tuple[int, ...], told: str) -> None:
    rank = tensor.shape.ndims
    if rank not in allowed:
        raise ValueError(f"{what} should have {told}. Given rank is {rank}")
