"""`tf.contrib.losses.metric_learning`: embeddings near where labels are equal, far where not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from opdock import dtypes
from opdock.graph.nodes.composite import SparseTensor
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.scopes import name_scope
from opdock.ops.arithmetic import maximum, squared_difference
from opdock.ops.array import expand_dims, shape
from opdock.ops.cast import cast
from opdock.ops.compare import equal, greater, logical_and, logical_not
from opdock.ops.composed.division import truediv
from opdock.ops.composed.eye import eye
from opdock.ops.composed.sparse_values import sparse_minimum, sparse_reduce_sum
from opdock.ops.elementary import exp, log, sqrt, square
from opdock.ops.joining import stack
from opdock.ops.linalg import matmul
from opdock.ops.matrix import transpose
from opdock.ops.printing import Print
from opdock.ops.reduce import reduce_any, reduce_max, reduce_mean, reduce_min, reduce_sum
from opdock.ops.select import where_v2
from opdock.ops.xent import softmax_cross_entropy_with_logits

__all__ = [
    "contrastive_loss",
    "lifted_struct_loss",
    "npairs_loss",
    "npairs_loss_multilabel",
    "triplet_semihard_loss",
]


# ---------------------------------------------------------------- distances
def pairwise_distance(feature: Any, squared: bool = False) -> Tensor:
    """How far each embedding is from each.

    Args:
        feature: a float32 tensor [n, dim].
        squared: whether distances are squared.

    Returns:
        A tensor [n, n], with zeros on its diagonal.
    """
    feature = convert_to_tensor(feature)
    norms = reduce_sum(square(feature), 1)
    products = matmul(feature, feature, transpose_b=True)
    found = expand_dims(norms, 1) + expand_dims(norms, 0) - 2.0 * products
    found = maximum(found, 0.0)
    apart = logical_and(greater(found, 0.0), equal(eye(shape(feature)[0]), 0.0))
    if not squared:
        # The root's slope at zero is infinite: none is taken there.
        found = sqrt(where_v2(apart, found, 1.0))
    distances: Tensor = where_v2(apart, found, 0.0)
    return distances


def _alike(labels: Any) -> Tensor:
    """Which labels are equal, [n, n].

    Raises:
        ValueError: labels are no vector.
    """
    labels = convert_to_tensor(labels)
    labels.shape.assert_has_rank(1)
    return equal(expand_dims(labels, 1), expand_dims(labels, 0))


def _others(alike: Tensor) -> Tensor:
    """1 for each pair of two with equal labels."""
    found: Tensor = cast(alike, dtypes.float32) - eye(shape(alike)[0])
    return found


# ---------------------------------------------------------------- losses of distances
def contrastive_loss(
    labels: Any, embeddings_anchor: Any, embeddings_positive: Any, margin: float = 1.0
) -> Tensor:
    """Pairs that belong together are to be near, others a margin apart (Hadsell et al. 2006).

    Args:
        labels: 1 for each pair that belongs together, else 0, [n].
        embeddings_anchor: the first of each pair, [n, dim],
        embeddings_positive: and the second.
        margin: how far apart others are to be at least.

    Returns:
        A scalar.
    """
    distances = sqrt(reduce_sum(squared_difference(embeddings_anchor, embeddings_positive), 1))
    together = cast(labels, distances.dtype)
    near = together * square(distances)
    far = (1.0 - together) * square(maximum(margin - distances, 0.0))
    return reduce_mean(near + far, name="contrastive_loss")


def triplet_semihard_loss(labels: Any, embeddings: Any, margin: float = 1.0) -> Tensor:
    """Each pair of one label is to be nearer than the nearest other that is farther now.

    Where no other is farther, the farthest counts (Schroff et al. 2015).

    Args:
        labels: integers [n].
        embeddings: a float32 tensor [n, dim], of length one each.
        margin: by how much, in squared distances.

    Returns:
        A scalar: the mean over all pairs of one label.
    """
    distances = pairwise_distance(embeddings, squared=True)
    alike = _alike(labels)
    unlike = logical_not(alike)
    lowest, highest = (f(distances, 1, keepdims=True) for f in (reduce_min, reduce_max))
    # [anchor, positive, negative]
    to_negative = expand_dims(distances, 1)
    farther = logical_and(expand_dims(unlike, 1), greater(to_negative, expand_dims(distances, 2)))
    nearest = reduce_min(where_v2(farther, to_negative, expand_dims(highest, 2)), 2)
    farthest = reduce_max(where_v2(unlike, distances, lowest), 1, keepdims=True)
    negatives = where_v2(reduce_any(farther, 2), nearest, farthest)
    pairs = _others(alike)
    losses = maximum((margin + distances - negatives) * pairs, 0.0)
    return truediv(reduce_sum(losses), reduce_sum(pairs), name="triplet_semihard_loss")


def lifted_struct_loss(labels: Any, embeddings: Any, margin: float = 1.0) -> Tensor:
    """Each pair of one label is to be nearer than either is to any other (Song et al. 2016).

    Args:
        labels: integers [n].
        embeddings: a float32 tensor [n, dim], whose lengths are bounded.
        margin: by how much.

    Returns:
        A scalar: the mean over all pairs of one label.
    """
    distances = pairwise_distance(embeddings)
    alike = _alike(labels)
    unlike = logical_not(alike)
    short = margin - distances
    lowest = reduce_min(short, 1, keepdims=True)
    greatest = reduce_max(where_v2(unlike, short, lowest), 1, keepdims=True)
    greatest = maximum(greatest, transpose(greatest))
    # Over the others of the second of a pair, then those of the first; no exponential overflows.
    parts = exp(expand_dims(short, 0) - expand_dims(greatest, 2))
    of_second = reduce_sum(parts * expand_dims(cast(unlike, dtypes.float32), 0), 2)
    losses = greatest + log(of_second + transpose(of_second)) + distances
    pairs = _others(alike)
    total = 0.25 * reduce_sum(square(maximum(losses * pairs, 0.0)))
    return truediv(total, reduce_sum(pairs) / 2.0, name="liftedstruct_loss")


# ---------------------------------------------------------------- losses of products
def npairs_loss(
    labels: Any, embeddings_anchor: Any, embeddings_positive: Any, reg_lambda: float = 0.002,
    print_losses: bool = False,
) -> Tensor:  # fmt: skip
    """Among the positives of all pairs, an anchor is to find those of its label (Sohn 2016).

    Args:
        labels: integers [n].
        embeddings_anchor: a float32 tensor [n, dim],
        embeddings_positive: and one of embeddings of the same labels.
        reg_lambda: how much lengths count.
        print_losses: whether each step tells of both parts.

    Returns:
        A scalar.
    """
    return _npairs(
        cast(_alike(labels), dtypes.float32), embeddings_anchor, embeddings_positive, reg_lambda,
        print_losses,
    )  # fmt: skip


def npairs_loss_multilabel(
    sparse_labels: Sequence[Any], embeddings_anchor: Any, embeddings_positive: Any,
    reg_lambda: float = 0.002, print_losses: bool = False,
) -> Tensor:  # fmt: skip
    """`npairs_loss` of examples with several labels: those count by how many they share.

    Args:
        sparse_labels: a sparse tensor of the same shape for each pair, which counts labels.
        embeddings_anchor: as of `npairs_loss`, with those that follow.
        embeddings_positive: as there.
        reg_lambda: as there.
        print_losses: as there.

    Returns:
        A scalar.

    Raises:
        TypeError: labels are not sparse.
    """
    if not all(isinstance(labels, SparseTensor) for labels in sparse_labels):
        raise TypeError(f"sparse_labels must be a list of SparseTensors, but got {sparse_labels}")
    with name_scope("NpairsLossMultiLabel"):
        return _npairs(
            _shared(sparse_labels), embeddings_anchor, embeddings_positive, reg_lambda,
            print_losses,
        )  # fmt: skip


def _shared(sparse_labels: Sequence[Any]) -> Tensor:
    """How many labels each two have in common, [n, n]."""
    count = len(sparse_labels)
    rows: dict[tuple[int, int], Tensor] = {}
    for i in range(count):
        for j in range(i, count):
            least = sparse_minimum(sparse_labels[i], sparse_labels[j])
            rows[i, j] = rows[j, i] = cast(sparse_reduce_sum(least), dtypes.float32)
    return stack([stack([rows[i, j] for j in range(count)]) for i in range(count)])


def _npairs(
    weights: Tensor, anchors: Any, positives: Any, reg_lambda: float, print_losses: bool
) -> Tensor:
    """Cross entropy of products and weights, which are made to add up to one, and lengths."""
    lengths = sum(reduce_mean(reduce_sum(square(e), 1)) for e in (anchors, positives))
    of_lengths = 0.25 * reg_lambda * lengths
    wanted = weights / reduce_sum(weights, 1, keepdims=True)
    products = matmul(anchors, positives, transpose_b=True)
    entropy = reduce_mean(
        softmax_cross_entropy_with_logits(labels=wanted, logits=products), name="xentropy"
    )
    if print_losses:
        entropy = Print(entropy, ["cross entropy:", entropy, "l2loss:", of_lengths])
    return of_lengths + entropy
