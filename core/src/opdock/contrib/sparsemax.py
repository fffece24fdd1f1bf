"""`tf.contrib.sparsemax`: a softmax most of whose results are zero, and its loss."""

from __future__ import annotations

from typing import Any

from opdock import dtypes
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.scopes import name_scope
from opdock.ops.arithmetic import maximum
from opdock.ops.array import expand_dims, shape
from opdock.ops.cast import cast
from opdock.ops.compare import equal, logical_and, logical_or
from opdock.ops.elementary import is_inf, is_nan
from opdock.ops.fill import fill, zeros_like
from opdock.ops.fill import range as range_
from opdock.ops.gather import gather_nd
from opdock.ops.joining import stack
from opdock.ops.reduce import reduce_sum
from opdock.ops.scan import cumsum
from opdock.ops.select import where
from opdock.ops.sorting import top_k

__all__ = ["sparsemax", "sparsemax_loss"]


def sparsemax(logits: Any, name: str | None = None) -> Tensor:
    """The point of the simplex that is nearest to logits (Martins, Astudillo 2016).

    Args:
        logits: a floating tensor [batch, classes].
        name: a name for the operations.

    Returns:
        A tensor of the same shape, whose rows add up to one. A row with a NaN, or with logits that
        are all minus infinity, is NaN.
    """
    with name_scope(name, "sparsemax", [logits]):
        z = convert_to_tensor(logits, name="logits")
        rows, classes = shape(z)[0], shape(z)[1]
        greatest = top_k(z, k=classes)[0]
        sums = cumsum(greatest, axis=1)
        counts = range_(1, cast(classes, z.dtype) + 1, dtype=z.dtype)
        # As many logits as are above what the row would be cut off by with them.
        support = reduce_sum(cast(1 + counts * greatest > sums, dtypes.int32), axis=1)
        last = stack([range_(rows), maximum(support, 1) - 1], axis=1)
        cut = (gather_nd(sums, last) - 1) / cast(support, z.dtype)
        found = maximum(cast(0, z.dtype), z - expand_dims(cut, 1))
        undefined = logical_or(equal(support, 0), is_nan(sums[:, -1]))
        nan = fill([rows, classes], cast(float("nan"), z.dtype))
        out = where(undefined, nan, found)
        out.set_shape(z.raw_shape)
        return out


def sparsemax_loss(logits: Any, sparsemax: Any, labels: Any, name: str | None = None) -> Tensor:
    """The loss whose gradient is the sparsemax less the labels.

    Args:
        logits: a floating tensor [batch, classes].
        sparsemax: their sparsemax.
        labels: of the same shape, rows that add up to one.
        name: a name for the operations.

    Returns:
        A tensor [batch].
    """
    with name_scope(name, "sparsemax_loss", [logits, sparsemax, labels]):
        z = convert_to_tensor(logits, name="logits")
        p = convert_to_tensor(sparsemax, name="sparsemax")
        q = convert_to_tensor(labels, name="labels")
        # Zero times an infinite logit is nothing; a NaN stays one.
        of_support = where(logical_or(p > 0, is_nan(p)), p * (z - 0.5 * p), zeros_like(p))
        of_labels = q * (0.5 * q - z)
        of_labels = where(logical_and(equal(q, 0), is_inf(z)), zeros_like(z), of_labels)
        return reduce_sum(of_support + of_labels, axis=1)
