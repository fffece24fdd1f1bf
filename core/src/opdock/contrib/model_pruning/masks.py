"""Weights with masks, and the collections in which all of a graph's are found."""

from __future__ import annotations

from typing import Any, Final

import opdock as tf

__all__ = [
    "MASKED_WEIGHT_COLLECTION",
    "MASKED_WEIGHT_NAME",
    "MASK_COLLECTION",
    "THRESHOLD_COLLECTION",
    "WEIGHT_COLLECTION",
    "Masked",
    "apply_mask",
    "get_masked_weights",
    "get_masks",
    "get_thresholds",
    "get_weight_sparsity",
    "get_weights",
]  # fmt: skip

MASK_COLLECTION: Final = "masks"
THRESHOLD_COLLECTION: Final = "thresholds"
MASKED_WEIGHT_COLLECTION: Final = "masked_weights"
WEIGHT_COLLECTION: Final = "kernel"
# The last part of the name of a product of weights and mask.
MASKED_WEIGHT_NAME: Final = "weights/masked_weight"


def masked(weights: Any, mask: Any, threshold: Any) -> Any:
    """The product of weights and mask; a mask that is new is put into the collections."""
    product = tf.multiply(mask, weights, MASKED_WEIGHT_NAME)
    if not any(mask is known for known in tf.get_collection(MASK_COLLECTION)):
        tf.add_to_collection(THRESHOLD_COLLECTION, threshold)
        tf.add_to_collection(MASK_COLLECTION, mask)
        tf.add_to_collection(MASKED_WEIGHT_COLLECTION, product)
        tf.add_to_collection(WEIGHT_COLLECTION, weights)
    return product


class Masked:
    """What a layer inherits before its own class so that its kernel is masked.

    The layer computes with the product, and finds it where it would find the variable, which is
    `unmasked_kernel`.
    """

    unmasked_kernel: Any = None

    def add_weight(self, name: str, shape: Any, *args: Any, **kwargs: Any) -> Any:
        """A variable of the layer; for its kernel, the product with a mask that is made too."""
        add: Any = super().add_weight  # type: ignore[misc]
        made = add(name, shape, *args, **kwargs)
        if name != "kernel":
            return made
        self.unmasked_kernel = made
        mask = add("mask", shape, initializer=tf.ones_initializer(), trainable=False)
        threshold = add("threshold", [], initializer=tf.zeros_initializer(), trainable=False)
        return masked(made, mask, threshold)


def apply_mask(x: Any, scope: Any = "") -> Any:
    """Weights with a mask of their own, a variable that is 1 everywhere at first.

    Args:
        x: the weights, a variable.
        scope: the variable scope of `mask` and `threshold`.

    Returns:
        The product.
    """
    with tf.variable_scope(scope):
        mask = tf.get_variable(
            "mask", x.shape, initializer=tf.ones_initializer(), trainable=False, dtype=x.dtype
        )
        threshold = tf.get_variable(
            "threshold", [], initializer=tf.zeros_initializer(), trainable=False, dtype=x.dtype
        )
    return masked(x, mask, threshold)


def get_masked_weights() -> list[Any]:
    """The graph's products of weights and masks."""
    return tf.get_collection(MASKED_WEIGHT_COLLECTION)


def get_masks() -> list[Any]:
    """The graph's masks."""
    return tf.get_collection(MASK_COLLECTION)


def get_thresholds() -> list[Any]:
    """The sizes below which weights are masked, one for each mask."""
    return tf.get_collection(THRESHOLD_COLLECTION)


def get_weights() -> list[Any]:
    """The variables that are masked."""
    return tf.get_collection(WEIGHT_COLLECTION)


def get_weight_sparsity() -> list[Any]:
    """The part of each mask that is 0."""
    return [tf.nn.zero_fraction(mask) for mask in get_masks()]
