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
from opdock.kernels.portable.gather import takes_checked
from opdock.kernels.select.signature import NodeSig

_HALVES = (dtypes.float16, dtypes.bfloat16)


def _shifted(xp: Any, logits: Any) -> Any:
    """`logits` minus each row's maximum, so that no power overflows."""
    if logits.shape[-1] == 0:
        return logits
    return logits - xp.max(logits, axis=-1, keepdims=True)


def _log_softmax(xp: Any, logits: Any) -> Any:
    """The log probabilities of the classes, by the namespace's own function if it has one."""
    own = getattr(xp, "log_softmax", None)
    if own is not None:
        return own(logits)
    shifted = _shifted(xp, logits)
    return shifted - xp.log(xp.sum(xp.exp(shifted), axis=-1, keepdims=True))


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
        return xp.astype(_log_softmax(xp, wide(logits)), logits.dtype, copy=False)

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


def _chances(xp: Any, logits: Any, valid: Any) -> tuple[Any, Any, Any]:
    """Logits less a number of their row's, the log of what their powers add up to, and chances.

    Rows that are not valid have NaN for the latter two.
    """
    if hasattr(xp, "log_softmax"):
        logs = xp.log_softmax(logits)
        if not (takes_checked(xp, valid) and bool(xp.all(valid))):
            logs = xp.where(valid[:, None], logs, xp.full_like(logs, xp.nan))
        return logs, 0, xp.exp(logs)
    shifted = _shifted(xp, logits)
    powers = xp.exp(shifted)
    total = xp.sum(powers, axis=-1, keepdims=True)
    total = xp.where(valid[:, None], total, xp.full_like(total, xp.nan))
    return shifted, xp.log(total[:, 0]), powers / total


@portable("SparseSoftmaxCrossEntropyWithLogits")
def sparse_xent(xp: Any, sig: NodeSig) -> Callable[..., Any]:
    """Loss and gradient against class ids; an id out of range gives a row of NaN."""
    wide = _wide(xp, sig)

    def run(features: Any, labels: Any) -> Any:
        check_classes(features, labels)
        rows, classes = features.shape
        valid = (labels >= 0) & (labels < classes)
        shifted, log_total, chances = _chances(xp, wide(features), valid)
        label = xp.where(valid, labels, xp.zeros_like(labels))
        arange = functools.partial(xp.arange, device=getattr(labels, "device", None))
        place = arange(rows, dtype=index_type(xp)) * classes + xp.astype(label, index_type(xp))
        loss = log_total - xp.take(xp.reshape(shifted, (-1,)), place, axis=0)
        back = xp.reshape(chances, (-1,))
        written = put_at(back, place, xp.take(back, place, axis=0) - 1)
        back = xp.reshape(back, (rows, classes))
        if not written:
            hit = arange(classes, dtype=labels.dtype)[None, :] == label[:, None]
            back = back - xp.astype(hit, back.dtype)
        kind = features.dtype
        return xp.astype(loss, kind, copy=False), xp.astype(back, kind, copy=False)

    return run
