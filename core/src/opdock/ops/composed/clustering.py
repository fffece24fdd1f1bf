"""k-means: where clusters begin, and the steps that move them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from opdock import dtypes
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.registry import get
from opdock.graph.nodes.scopes import colocate_with, control_dependencies
from opdock.graph.nodes.seeds import get_seed
from opdock.graph.variables.variable import Variable
from opdock.ops import check, control, state
from opdock.ops.arithmetic import maximum, minimum
from opdock.ops.array import reshape, squeeze
from opdock.ops.array import shape as shape_of
from opdock.ops.cast import cast
from opdock.ops.composed.embedding import embedding_lookup
from opdock.ops.composed.loops import while_loop
from opdock.ops.composed.moments import l2_normalize
from opdock.ops.composed.variable_scatter import scatter_add
from opdock.ops.elementary import square
from opdock.ops.fill import ones, ones_like, zeros, zeros_like
from opdock.ops.gather import gather
from opdock.ops.identity import identity, placeholder_with_default
from opdock.ops.joining import concat
from opdock.ops.linalg import matmul
from opdock.ops.matrix import transpose
from opdock.ops.random import random_uniform
from opdock.ops.reduce import reduce_sum
from opdock.ops.sets import unique
from opdock.ops.sums import add_n
from opdock.ops.unsorted_segment import unsorted_segment_sum

__all__ = [
    "CLUSTERS_VAR_NAME",
    "COSINE_DISTANCE",
    "KMC2_INIT",
    "KMEANS_PLUS_PLUS_INIT",
    "RANDOM_INIT",
    "SQUARED_EUCLIDEAN_DISTANCE",
    "KMeans",
]  # fmt: skip

SQUARED_EUCLIDEAN_DISTANCE: Final = "squared_euclidean"
COSINE_DISTANCE: Final = "cosine"
RANDOM_INIT: Final = "random"
KMEANS_PLUS_PLUS_INIT: Final = "kmeans_plus_plus"
KMC2_INIT: Final = "kmc2"
CLUSTERS_VAR_NAME: Final = "clusters"


class KMeans:
    """The graph of k-means: of whole data in each step, or of batches.

    With batches and `mini_batch_steps_per_iteration` above 1 there are two copies of the centers:
    points are assigned by one, the other one moves, and after so many steps it is copied.

    Args:
        inputs: a tensor [points, size], or a list of such parts, in an order without meaning.
        num_clusters: how many clusters; not used where `initial_clusters` is a matrix.
        initial_clusters: the first centers as a matrix, a function of (inputs, k) that chooses up
            to k of them, or "random", "kmeans_plus_plus" or "kmc2": one batch need not have enough.
        distance_metric: "squared_euclidean" or "cosine".
        use_mini_batch: whether the inputs are batches of the data.
        mini_batch_steps_per_iteration: see above.
        random_seed: the seed of the choice of centers.
        kmeans_plus_plus_num_retries: how many more points k-means++ tries for each center; below 0,
            a number that grows with the logarithm of the clusters.
        kmc2_chain_length: the points of a batch that k-MC2 tries for each center.

    Raises:
        ValueError: there is no such distance, or no such way to begin.
    """

    def __init__(
        self, inputs: Any, num_clusters: Any, initial_clusters: Any = RANDOM_INIT,
        distance_metric: str = SQUARED_EUCLIDEAN_DISTANCE, use_mini_batch: bool = False,
        mini_batch_steps_per_iteration: int = 1, random_seed: int | None = 0,
        kmeans_plus_plus_num_retries: int = 2, kmc2_chain_length: int = 200,
    ) -> None:  # fmt: skip
        ways = (RANDOM_INIT, KMEANS_PLUS_PLUS_INIT, KMC2_INIT)
        if isinstance(initial_clusters, str) and initial_clusters not in ways:
            raise ValueError(f"Unsupported initialization algorithm '{initial_clusters}'")
        if distance_metric not in (SQUARED_EUCLIDEAN_DISTANCE, COSINE_DISTANCE):
            raise ValueError(f"Unsupported distance metric '{distance_metric}'")
        self._inputs = inputs if isinstance(inputs, list) else [inputs]
        self._num_clusters, self._initial = num_clusters, initial_clusters
        self._cosine = distance_metric == COSINE_DISTANCE
        self._batches, self._period = use_mini_batch, int(mini_batch_steps_per_iteration)
        self._seed = get_seed(random_seed)[0]
        self._retries, self._chain = kmeans_plus_plus_num_retries, kmc2_chain_length

    @property
    def _has_copy(self) -> bool:
        return self._batches and self._period > 1

    @property
    def _centers_have_length_one(self) -> bool:
        return self._cosine and (not self._batches or self._has_copy)

    def training_graph(self) -> tuple[Any, ...]:
        """The nodes of the training.

        Run the initialization until the fourth result is true, then the training as often as it
        pays.

        Returns:
            For each part of the inputs, as tuples: the distances [points, clusters], the indices of
            the nearest clusters, and their distances. Then a variable that tells whether all
            centers have been chosen, the operation that chooses, and a step of the training.
        """
        if isinstance(self._initial, str) or callable(self._initial):
            initial, count = self._initial, convert_to_tensor(self._num_clusters)
        else:
            initial = convert_to_tensor(self._initial)
            count = shape_of(initial)[0]
        centers, chosen, moving, counts, left = self._create_variables(count)
        beginning = _Beginning(
            self._inputs, count, initial, self._cosine, self._seed, self._retries, self._chain,
            centers, moving, chosen,
        )  # fmt: skip
        init_op = beginning.op()
        inputs, seen = self._inputs, centers
        if self._cosine:
            inputs = [l2_normalize(part, 1) for part in inputs]
            if not self._centers_have_length_one:
                seen = l2_normalize(convert_to_tensor(centers), 1)
        all_scores, scores, nearest = self._infer_graph(inputs, seen)
        if self._batches:
            with control_dependencies([self._synchronized(left, centers, moving, counts)]):
                step = self._batch_step(inputs, nearest, moving, counts)
        else:
            step = self._whole_step(inputs, count, nearest, centers)
        return all_scores, nearest, scores, chosen, init_op, step

    def _infer_graph(self, inputs: Sequence[Any], clusters: Any) -> tuple[Any, ...]:
        """For each part: all distances, the distance of the nearest center, and its index."""
        clusters = convert_to_tensor(clusters)
        directions = clusters
        if self._cosine and not self._centers_have_length_one:
            directions = l2_normalize(clusters, 1)
        found = []
        for part in inputs:
            with colocate_with(part.op, ignore_existing=True):
                indices, distances = get("NearestNeighbors")(part, directions, 1)
                if self._cosine:  # half the squared distance on the sphere
                    distances *= 0.5
                found.append(
                    (self._distances(part, clusters), squeeze(distances, [-1]),
                     squeeze(indices, [-1]))
                )  # fmt: skip
        return tuple(zip(*found, strict=True))

    def _distances(self, part: Any, clusters: Any) -> Any:
        products = matmul(part, clusters, transpose_b=True)
        if self._cosine:
            return 1 - products
        points, centers = (reduce_sum(square(x), 1, keepdims=True) for x in (part, clusters))
        return points - 2 * products + transpose(centers)

    def _create_variables(self, count: Any) -> tuple[Any, ...]:
        """Centers, whether they have been chosen, their moving copy, counts, and steps left."""
        # The shape is known when centers have been chosen.
        nothing = placeholder_with_default([], None)
        centers = Variable(nothing, name=CLUSTERS_VAR_NAME, validate_shape=False)
        chosen = Variable(False, dtype=dtypes.bool, name="initialized")
        if self._has_copy:
            moving = Variable(nothing, name="clusters_updated", validate_shape=False)
            left = Variable(self._period, dtype=dtypes.int64, name="update_in_steps")
            return centers, chosen, moving, Variable(zeros([count], dtypes.int64)), left
        counts = Variable(ones([count], dtypes.int64)) if self._batches else None
        return centers, chosen, centers, counts, None

    def _synchronized(self, left: Any, centers: Any, moving: Any, counts: Any) -> Any:
        """Copies the moving centers when an iteration is over."""
        if not self._has_copy:
            return control.no_op()

        def copied() -> Any:
            with control_dependencies([state.assign(left, self._period - 1)]):
                new = convert_to_tensor(moving)
                new = l2_normalize(new, 1) if self._cosine else new
            with (
                control_dependencies([state.assign(centers, new)]),
                control_dependencies([state.assign(counts, zeros_like(counts))]),
            ):
                return identity(left)

        return control.cond(convert_to_tensor(left) <= 0, copied, lambda: state.assign_sub(left, 1))

    def _batch_step(
        self, inputs: Sequence[Any], nearest: Sequence[Any], centers: Any, counts: Any
    ) -> Any:
        """Moves each center to the mean of all points that it has got so far."""
        updates = []
        for part, indices in zip(inputs, nearest, strict=True):
            with colocate_with(part.op, ignore_existing=True):
                ids, where = unique(reshape(indices, [-1]))
                number = shape_of(ids)[0]
                before, old = (gather(convert_to_tensor(v), ids) for v in (counts, centers))
                new = unsorted_segment_sum(ones_like(where, dtypes.int64), where, number)
                sums = unsorted_segment_sum(part, where, number)
                share = 1 / cast(before + new, part.dtype)
                pull = sums - reshape(cast(new, part.dtype), [-1, 1]) * old
                pull *= reshape(share, [-1, 1])
            updates.append(scatter_add(counts, ids, new))
            updates.append(scatter_add(centers, ids, pull))
        return control.group(*updates)

    def _whole_step(
        self, inputs: Sequence[Any], count: Any, nearest: Sequence[Any], centers: Any
    ) -> Any:
        """Moves each center to the mean of its points."""
        sums, numbers = [], []
        for part, indices in zip(inputs, nearest, strict=True):
            with colocate_with(part.op, ignore_existing=True):
                sums.append(unsorted_segment_sum(part, indices, count))
                one = ones([shape_of(part)[0], 1])
                numbers.append(unsorted_segment_sum(one, indices, count))
        total = add_n(sums)
        new = total / (cast(add_n(numbers), total.dtype) + 1e-6)
        if self._centers_have_length_one:
            new = l2_normalize(new, 1)
        return state.assign(centers, new)


class _Beginning:
    """The operation that chooses centers, as many as a batch allows, until there are enough."""

    def __init__(
        self, inputs: Sequence[Any], count: Any, initial: Any, cosine: bool, seed: Any,
        retries: int, chain: int, centers: Any, moving: Any, chosen: Any,
    ) -> None:  # fmt: skip
        self._inputs, self._count, self._initial = list(inputs), count, initial
        self._cosine, self._seed, self._retries, self._chain = cosine, seed, retries, chain
        self._centers, self._moving, self._chosen = centers, moving, chosen
        self._selected = shape_of(convert_to_tensor(centers))[0]
        self._remaining = count - self._selected
        self._points = add_n([shape_of(part)[0] for part in self._inputs])

    def op(self) -> Any:
        """Chooses centers, or makes sure that they are known to be there."""
        return control.cond(
            get("Equal")(self._remaining, 0),
            lambda: check.assert_equal(self._chosen, True),
            self._begin,
        )

    def _begin(self) -> Any:
        with control_dependencies([check.assert_positive(self._remaining)]):
            left = self._chains() if self._initial == KMC2_INIT else self._add()
            return control.cond(
                get("Equal")(left, 0),
                lambda: control.group(state.assign(self._chosen, True)),
                control.no_op,
            )

    def _direction(self, points: Any) -> Any:
        return l2_normalize(points, 1) if self._cosine else points

    def _assigned(self, centers: Any) -> Any:
        """How many centers are missing once these have been assigned."""
        done = state.assign(self._centers, centers, validate_shape=False)
        if self._moving is not self._centers:
            done = state.assign(self._moving, done, validate_shape=False)
        return self._count - shape_of(done)[0]

    def _add(self) -> Any:
        new = self._direction(self._new())
        every = control.cond(
            get("Equal")(self._selected, 0),
            lambda: new,
            lambda: concat([convert_to_tensor(self._centers), new], 0),
        )
        return self._assigned(every)

    def _new(self) -> Any:
        if callable(self._initial):
            return self._initial(self._inputs, self._remaining)
        if self._initial == RANDOM_INIT:
            return control.cond(
                self._points <= self._remaining, lambda: concat(self._inputs, 0), self._random
            )
        if self._initial == KMEANS_PLUS_PLUS_INIT:
            enough = check.assert_greater_equal(self._points, self._remaining)
            with control_dependencies([enough]):
                return get("KmeansPlusPlusInitialization")(
                    self._direction(self._inputs[0]), cast(self._remaining, dtypes.int64),
                    self._seed, self._retries,
                )  # fmt: skip
        fits = check.assert_equal(self._remaining, shape_of(self._initial)[0])
        with control_dependencies([fits]):
            return identity(self._initial)

    def _random(self) -> Any:
        indices = random_uniform(
            reshape(self._remaining, [-1]), 0, cast(self._points, dtypes.int64), dtypes.int64,
            seed=self._seed,
        )  # fmt: skip
        return embedding_lookup(self._inputs, indices, partition_strategy="div")

    def _chains(self) -> Any:
        """One Markov chain of k-MC2 for each new center, over points of its own."""
        first = self._inputs[0]
        chains = shape_of(first)[0] // self._chain
        wanted = maximum(minimum(self._remaining, chains), 1)

        def one(i: Any, _: Any) -> Any:
            new: Callable[[], Any] = lambda: self._direction(reshape(first[0], [1, -1]))
            start = i * self._chain
            every = control.cond(
                get("Equal")(self._selected, 0),
                new,
                lambda: self._of_chain(first[start : start + self._chain]),
            )
            return i + 1, self._assigned(every)

        return while_loop(lambda i, _: i < wanted, one, [0, 0])[1]

    def _of_chain(self, points: Any) -> Any:
        centers = convert_to_tensor(self._centers)
        _, distances = get("NearestNeighbors")(points, centers, 1)
        index = get("KMC2ChainInitialization")(squeeze(distances), self._seed)
        return concat([centers, self._direction(reshape(points[index], [1, -1]))], 0)
