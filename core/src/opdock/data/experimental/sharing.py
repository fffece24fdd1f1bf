"""What strategies and older programs ask of datasets: parts of batches, races, pools of threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from opdock.data.steps import Made, batched_spec, int64
from opdock.data.util import nest, structure
from opdock.graph.nodes.constant_value import constant_value
from opdock.graph.nodes.operation import Tensor
from opdock.ops import data_elements as elements
from opdock.shapes import TensorShape

__all__ = [
    "PrivateThreadPool", "auto_sharded", "choose_fastest", "non_serializable",
    "override_threadpool", "rebatched", "sliding_windows",
]  # fmt: skip

Apply = Callable[[Any], Any]


def rebatched(input_dataset: Any, num_replicas: int, use_fallback: bool = True) -> Any:
    """Batches in as many parts as there are replicas.

    Args:
        input_dataset: the batches.
        num_replicas: how many parts each has. They are of one size, but for the last ones.
        use_fallback: accepted for TF's signature: TF may make smaller batches at once.

    Raises:
        ValueError: an element has a component that is no batch.
    """
    spec = input_dataset.element_spec
    shapes = nest.map_structure(
        lambda shape: _part_of(shape, num_replicas), structure.legacy_shapes(spec)
    )
    made = structure.convert_legacy_structure(
        structure.legacy_types(spec), shapes, structure.legacy_classes(spec)
    )
    variant = elements.rebatch_dataset_op(
        input_dataset._variant_tensor, int64(num_replicas, "num_replicas"),
        use_fallback=use_fallback, **structure.flat_structure(made),
    )  # fmt: skip
    return input_dataset._follow(Made(variant, made))


def _part_of(shape: TensorShape, replicas: int) -> TensorShape:
    dims = shape.raw
    if dims is None:
        return shape
    if not dims:
        raise ValueError(
            "Input shape should have at least one dimension. Perhaps your input dataset is not "
            "batched?"
        )
    known = dims[0] is not None and dims[0] % replicas == 0
    # Parts of a batch that cannot be divided evenly differ in size.
    return TensorShape([dims[0] // replicas if known and dims[0] is not None else None, *dims[1:]])


def auto_sharded(input_dataset: Any, num_workers: Any, index: Any) -> Any:
    """The part of a dataset that a worker has: some of its files, or else of its elements.

    Args:
        input_dataset: that all workers share.
        num_workers: how many there are.
        index: the number of this one.
    """
    given = int64(num_workers, "num_workers"), int64(index, "index")
    return input_dataset._unchanged(elements.auto_shard_dataset_op, *given)


def choose_fastest(datasets: Sequence[Any], num_experiments: int = 10) -> Any:
    """The elements of datasets that all have the same, by whichever is the fastest.

    Args:
        datasets: of equal elements in one order.
        num_experiments: for how many elements all are asked, and timed.
    """
    first, *others = datasets
    spec = first.element_spec
    variant = elements.choose_fastest_dataset_op(
        [d._variant_tensor for d in datasets], num_experiments=num_experiments,
        **structure.flat_structure(spec),
    )  # fmt: skip
    return first._follow(Made(variant, spec), *others)


def sliding_windows(dataset: Any, size: Any, shift: Any, stride: Any) -> Any:
    """Batches of `size` elements that overlap; those that would be smaller are left out."""
    given = int64(size, "window_size"), int64(shift, "window_shift"), int64(stride, "window_stride")
    known = constant_value(given[0])
    spec = batched_spec(dataset.element_spec, None if known is None else int(known))
    variant = elements.sliding_window_dataset_op(
        dataset._variant_tensor, *given, **structure.flat_structure(spec)
    )
    return dataset._follow(Made(variant, spec))


def non_serializable() -> Apply:
    """The same elements; an iterator over them cannot be saved."""
    return lambda dataset: dataset._unchanged(elements.non_serializable_dataset_op)


class PrivateThreadPool:
    """Threads for the maps of a dataset; see `override_threadpool`.

    Args:
        num_threads: how many there are.
        display_name: what they are called.
        max_intra_op_parallelism: accepted for TF's signature: ops share the session's threads.
    """

    def __init__(
        self, num_threads: int, display_name: str | None = None,
        max_intra_op_parallelism: int | None = 1,
    ) -> None:  # fmt: skip
        self._resource: Tensor = elements.thread_pool_handle_op(
            num_threads=num_threads, display_name=display_name or "",
            max_intra_op_parallelism=(
                1 if max_intra_op_parallelism is None else max_intra_op_parallelism
            ),
        )  # fmt: skip


def override_threadpool(dataset: Any, thread_pool: PrivateThreadPool) -> Any:
    """The same elements, by maps that have no more threads than a pool has."""
    return dataset._unchanged(elements.thread_pool_dataset_op, thread_pool._resource)
