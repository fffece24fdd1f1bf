"""Portable kernels of softmax and the cross entropies fused with it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from opdock import dtypes
from opdock.kernels.array_api import (
    index_type,
    invalid,
    put_at,
)
from opdock.kernels.portable import portable
from opdock.kernels.select.signature import NodeSig

_HALVES = (dtypes.float16, dtypes.bfloat16)


def _shifted(xp: Any, logits: Any) -> Any:
    """`logits` minus each row's maximum, so that no power overflows."""
    if logits.shape[-1] == 0:
        return logits
    return logits - xp.max(logits, axis=-1, keepdims=True)


def _wide(xp: Any, sig: NodeSig) -> Callable[[Any], Any]:
    if sig.in_dtypes[0] in _HALVES:
        return lambda x: xp.astype(x, xp.float32)
    return lambda x: x


@portable("Softmax")
def softmax(xp: Any, sig: NodeSig) -> Callable[..., Any]:
    """exp(x) / sum(exp(x)) along the last dimension."""
    wide = _wide(xp, sig)

    def run(logits: Any) -> Any:
        powers = xp.exp(_shifted(xp, wide(logits)))
        out = powers / xp.sum(powers, axis=-1, keepdims=True)
        return xp.astype(out, logits.dtype, copy=False)

    return run


@portable("LogSoftmax")
def log_softmax(xp: Any, sig: NodeSig) -> Callable[..., Any]:
    """The log probabilities: x - log(sum(exp(x))) along the last dimension."""
    wide = _wide(xp, sig)

    def run(logits: Any) -> Any:
        shifted = _shifted(xp, wide(logits))
        out = shifted - xp.log(xp.sum(xp.exp(shifted), axis=-1, keepdims=True))
        return xp.astype(out, logits.dtype, copy=False)

    return run


@portable("SoftmaxCrossEntropyWithLogits")
def xent(xp: Any, sig: NodeSig) -> Callable[..., Any]:
    """Loss and gradient against a distribution over the classes."""
    wide = _wide(xp, sig)

    def run(features: Any, labels: Any) -> Any:
        logits, target = xp.broadcast_arrays(wide(features), wide(labels))
        shifted = _shifted(xp, logits)
        powers = xp.exp(shifted)
        total = xp.sum(powers, axis=-1, keepdims=True)
        # As in TF, a class of no probability spoils the loss though its label is 0.
        loss = xp.sum(target * (xp.log(total) - shifted), axis=-1)
        back = powers / total - target
        kind = features.dtype
        return xp.astype(loss, kind, copy=False), xp.astype(back, kind, copy=False)

    return run


def check_classes(features: Any, labels: Any) -> None:
    """Raises InvalidArgumentError where there is not one label for each row of classes."""
    if len(features.shape) != 2:
        raise invalid(f"logits must be 2-D, but got shape {list(features.shape)}")
    if len(labels.shape) != 1:
        raise invalid(f"labels must be 1-D, but got shape {list(labels.shape)}")
    if features.shape[0] != labels.shape[0]:
        raise invalid(
            "logits and labels must have the same first dimension, got logits shape "
            f"{list(features.shape)} and labels shape {list(labels.shape)}"
        )
    if features.shape[1] == 0:
        raise invalid(f"Must have at least one class, but got logits shape {list(features.shape)}")


def no_class(labels: Any, row: int, classes: int) -> Exception:
    """The error of a row's label on the host that is not below the number of classes."""
    values = " ".join(str(v) for v in labels[:32]) + (" ..." if labels.size > 32 else "")
    return invalid(
        f"Received a label value of {labels[row]} which is outside the valid range of "
        f"[0, {classes}).  Label values: {values}"
    )


@portable("SparseSoftmaxCrossEntropyWithLogits")
def sparse_xent(xp: Any, sig: NodeSig) -> Callable[..., Any]:
    """Loss and gradient against class ids; an id out of range gives a row of NaN."""
    wide = _wide(xp, sig)

    def run(features: Any, labels: Any) -> Any:
        check_classes(features, labels)
        logits = wide(features)
        top = xp.max(logits, axis=-1, keepdims=True)
        powers = xp.exp(logits - top)
        total = xp.sum(powers, axis=-1, keepdims=True)
        rows, classes = features.shape
        valid = (labels >= 0) & (labels < classes)
        label = xp.where(valid, labels, xp.zeros_like(labels))
        total = xp.where(valid[:, None], total, xp.full_like(total, xp.nan))
        arange = functools.partial(xp.arange, device=getattr(labels, "device", None))
        place = arange(rows, dtype=index_type(xp)) * classes + xp.astype(label, index_type(xp))
        chosen = xp.take(xp.reshape(logits, (-1,)), place, axis=0) - top[:, 0]
        loss = xp.log(total[:, 0]) - chosen
        back = xp.reshape(powers / total, (-1,))
        written = put_at(back, place, xp.take(back, place, axis=0) - 1)
        back = xp.reshape(back, (rows, classes))
        if not written:
            hit = arange(classes, dtype=labels.dtype)[None, :] == label[:, None]
            back = back - xp.astype(hit, back.dtype)
        kind = features.dtype
        return xp.astype(loss, kind, copy=False), xp.astype(back, kind, copy=False)

    return run
