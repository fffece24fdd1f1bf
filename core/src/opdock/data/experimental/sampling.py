"""Datasets that draw from several others, and from one by class."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from opdock import dtypes
from opdock.data import steps
from opdock.data.dataset import DatasetV2
from opdock.data.dataset_v1 import DatasetV1, DatasetV1Adapter
from opdock.data.experimental.transforms import scan
from opdock.data.sequence import directed
from opdock.data.util import structure
from opdock.graph.nodes.constant_value import constant_value
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.typespec import TensorSpec
from opdock.ops.array import expand_dims, shape, squeeze
from opdock.ops.cast import cast
from opdock.ops.compare import less
from opdock.ops.composed.division import truediv
from opdock.ops.control import cond
from opdock.ops.elementary import log
from opdock.ops.fill import fill
from opdock.ops.gather import gather
from opdock.ops.printing import Print
from opdock.ops.random import random_uniform
from opdock.ops.random_stateless import stateless_multinomial
from opdock.ops.reduce import reduce_max, reduce_min, reduce_sum
from opdock.ops.select import one_hot
from opdock.ops.tiling import tile
from opdock.shapes import dimension_value

__all__ = [
    "RandomDataset", "choose_from_datasets", "rejection_resample", "sample_from_datasets",
]  # fmt: skip

_ESTIMATED_AT_ONCE = 32
_SEEN_BEFORE = 10
"""Examples of each class that count as seen before the first: early estimates stay moderate."""


class RandomDataset(DatasetV1Adapter):
    """Random numbers of 32 bits, as scalars of int64, without end.

    Args:
        seed: the op's seed; see `tf.set_random_seed`.
    """

    def __init__(self, seed: Any = None) -> None:
        super().__init__(DatasetV2._begin(steps.random(seed)))


def choose_from_datasets(datasets: Sequence[Any], choice_dataset: Any) -> Any:
    """Elements of several datasets; another one says from which to take the next.

    Args:
        datasets: of elements of one kind.
        choice_dataset: scalars of int64.

    Raises:
        TypeError: the elements are of several kinds, or the choices something else.
    """
    if not structure.are_compatible(choice_dataset.element_spec, TensorSpec([], dtypes.int64)):
        raise TypeError("`choice_dataset` must be a dataset of scalar `tf.int64` tensors.")
    return choice_dataset._follow(directed(choice_dataset, datasets), *datasets)


def sample_from_datasets(datasets: Sequence[Any], weights: Any = None, seed: Any = None) -> Any:
    """Elements of several datasets, the next from one drawn at random.

    Args:
        datasets: of elements of one kind.
        weights: how likely each is, a vector of floats or a dataset of them; equal by default.
        seed: of the draws.

    Raises:
        TypeError: the elements are of several kinds, or the weights no floats.
        ValueError: there are not as many weights as datasets.
    """
    seeds = RandomDataset(seed).batch(2)
    if isinstance(weights, DatasetV2):
        logits = weights.map(lambda *p: log(p, name="logits"))
        return _sampled(datasets, DatasetV1.zip((logits, seeds)).map(_draw))
    fixed: Any = [[1.0] * len(datasets)]
    if weights is not None:
        given = convert_to_tensor(weights, name="weights")
        if given.dtype not in (dtypes.float32, dtypes.float64):
            raise TypeError(
                "`weights` must be convertible to a tensor of `tf.float32` or `tf.float64` "
                "elements."
            )
        if not given.shape.is_compatible_with([len(datasets)]):
            raise ValueError("`weights` must be a vector of length `len(datasets)`.")
        fixed = expand_dims(log(given, name="logits"), 0)
    if len(datasets) == 1:
        return datasets[0]
    return _sampled(datasets, seeds.map(lambda pair: _draw(fixed, pair)))


def _draw(logits: Any, seed: Any) -> Tensor:
    return squeeze(stateless_multinomial(logits, 1, seed=seed), axis=[0, 1])


def _sampled(datasets: Sequence[Any], selector: Any) -> Any:
    return DatasetV1Adapter(selector._follow(directed(selector, datasets), *datasets))


# ---------------------------------------------------------------- by class
def rejection_resample(
    class_func: Callable[..., Any], target_dist: Any, initial_dist: Any = None, seed: Any = None
) -> Callable[[Any], Any]:
    """Pairs of class and element whose classes have a distribution, by leaving elements out.

    Args:
        class_func: from an element to its class, a scalar of int32.
        target_dist: the distribution of classes to reach.
        initial_dist: the one that the elements have; estimated while they come by default.
        seed: of the draws.
    """

    def apply(dataset: Any) -> Any:
        target = convert_to_tensor(target_dist, name="target_dist")
        classes = dataset.map(class_func)
        initial = None
        if initial_dist is not None:
            initial = convert_to_tensor(initial_dist, name="initial_dist")
            accepted, kept = _acceptance(initial, target)
            initials, acceptances, originals = (
                DatasetV1.from_tensors(t).repeat() for t in (initial, accepted, kept)
            )
        else:
            initials = _estimated(target, classes)
            both = initials.map(lambda known: _acceptance(known, target))
            acceptances = both.map(lambda accepted, _: accepted)
            originals = both.map(lambda _, kept: kept)
        filtered = _accepted(dataset, acceptances, initials, classes, seed).prefetch(3)
        unfiltered = DatasetV1.zip((classes, dataset))
        share = None if initial is None else _share_kept(initial, target)
        if share == 1:
            return unfiltered
        if share == 0:
            return filtered
        weights = originals.map(lambda kept: [(kept, 1.0 - kept)])
        return sample_from_datasets([unfiltered, filtered], weights=weights, seed=seed)

    return apply


def _share_kept(initial: Tensor, target: Tensor) -> Any:
    known = constant_value(initial), constant_value(target)
    if known[0] is None or known[1] is None:
        return None
    return np.min(known[1] / known[0])


def _acceptance(initial: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """The probability with which an element of each class is taken, and that of taking any."""
    ratio = target / (initial + np.finfo(initial.dtype.as_numpy_dtype).tiny)
    largest, smallest = reduce_max(ratio), reduce_min(ratio)
    return (ratio - smallest) / (largest - smallest), smallest


def _accepted(dataset: Any, acceptances: Any, initials: Any, classes: Any, seed: Any) -> Any:
    def warned(accepted: Tensor, initial: Tensor) -> Any:
        rejected = reduce_sum((1 - accepted) * initial)
        return cond(
            less(rejected, 0.5), lambda: accepted,
            lambda: Print(
                accepted, [rejected, initial, accepted],
                message="Proportion of examples rejected by sampler is high: ", summarize=100,
                first_n=10,
            ),
        )  # fmt: skip

    told = DatasetV1.zip((acceptances, initials)).map(warned)
    together = DatasetV1.zip((classes, told, dataset)).map(
        lambda label, accepted, data: (label, gather(accepted, label), data)
    )
    kept = together.filter(lambda _, chance, data: random_uniform([], seed=seed) < chance)
    return kept.map(lambda label, _, data: (label, data))


def _estimated(target: Tensor, classes: Any) -> Any:
    """The distribution of the classes that have come, for each element."""
    known = dimension_value(target.shape[0])
    count = shape(target)[0] if known is None else known
    seen_before = fill([count], np.int64(_SEEN_BEFORE))

    def update(seen: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        number = dimension_value(seen.shape[0])
        seen = seen + reduce_sum(one_hot(labels, number, dtype=dtypes.int64), 0)
        estimate = cast(truediv(seen, reduce_sum(seen)), dtypes.float32)
        return seen, tile(expand_dims(estimate, 0), [_ESTIMATED_AT_ONCE, 1])

    return classes.batch(_ESTIMATED_AT_ONCE).apply(scan(seen_before, update)).unbatch()
