"""Softmax and cross-entropy kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.plugin import KernelTable, NodeSig, checks, dtypes
from opdock_cpu.halves import narrowed, widened

__all__ = ["table"]

Array = npt.NDArray[Any]

table = KernelTable()

_FLOATS = frozenset({dtypes.float32, dtypes.float64})


def _shift(logits: Array, out: Array | None = None) -> Any:
    """Logits minus each row's maximum, so that no power overflows."""
    if logits.shape[-1] == 0:
        return np.array(logits)
    return np.subtract(logits, logits.max(axis=-1, keepdims=True), out)


@table.binder("Softmax", T=_FLOATS, out=True)
def softmax(sig: NodeSig) -> Callable[..., Any]:
    """exp(x) / sum(exp(x)) along the last dimension."""

    def run(logits: Array, out: Array | None) -> Any:
        out = _shift(logits, out)
        np.exp(out, out)
        return np.divide(out, out.sum(axis=-1, keepdims=True), out)

    return run


@table.binder("LogSoftmax", T=_FLOATS, out=True)
def log_softmax(sig: NodeSig) -> Callable[..., Any]:
    """The log probabilities: x - log(sum(exp(x))) along the last dimension."""

    def run(logits: Array, out: Array | None) -> Any:
        out = _shift(logits, out)
        return np.subtract(out, np.log(np.exp(out).sum(axis=-1, keepdims=True)), out)

    return run


@table.binder("SoftmaxCrossEntropyWithLogits")
def xent(sig: NodeSig) -> Callable[..., tuple[Array, Array]]:
    """Loss and gradient against a distribution over the classes."""
    kind = sig.in_dtypes[0].np

    def run(features: Array, labels: Array) -> tuple[Array, Array]:
        logits, target = widened(features), widened(labels)
        if logits.shape != target.shape:
            logits, target = np.broadcast_arrays(logits, target)
        shifted = _shift(logits)
        powers = np.exp(shifted)
        total = powers.sum(axis=-1, keepdims=True)
        np.subtract(np.log(total), shifted, shifted)
        # As in TF, a class of no probability spoils the loss though its label is 0.
        terms = np.multiply(target, shifted, shifted)
        np.divide(powers, total, powers)
        np.subtract(powers, target, powers)
        return narrowed(terms.sum(axis=-1), kind), narrowed(powers, kind)

    return run


@table.binder("SparseSoftmaxCrossEntropyWithLogits")
def sparse_xent(sig: NodeSig) -> Callable[..., tuple[Array, Array]]:
    """Loss and gradient against class ids."""
    kind = sig.in_dtypes[0].np

    def run(features: Array, labels: Array) -> tuple[Array, Array]:
        checks.check_classes(features, labels)
        check_labels(labels, features.shape[1])
        shifted = _shift(widened(features))
        rows = np.arange(labels.shape[0])
        picked = shifted[rows, labels]
        np.exp(shifted, shifted)
        total = shifted.sum(axis=-1, keepdims=True)
        loss = np.log(total[:, 0]) - picked
        np.divide(shifted, total, shifted)
        shifted[rows, labels] -= 1
        return narrowed(loss, kind), narrowed(shifted, kind)

    return run


def check_labels(labels: Array, classes: int) -> None:
    wrong = (labels < 0) | (labels >= classes)
    if wrong.any():
        raise checks.no_class(labels, int(np.argmax(wrong)), classes)
