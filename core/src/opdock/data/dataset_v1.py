"""`tf.data.Dataset` of TF 1: version 2 with iterators, and structures in three parts."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from opdock.data import steps
from opdock.data.dataset import DatasetV2
from opdock.data.eager_iterator import EagerIterator
from opdock.data.functions import traced_factory
from opdock.data.iterators import Iterator
from opdock.data.options import Options
from opdock.data.util import structure
from opdock.graph.nodes.graph import get_default_graph
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.scopes import colocate_with, executing_eagerly
from opdock.ops.data_iterators import iterator_v2_op, make_iterator_op, one_shot_iterator_op

__all__ = [
    "DatasetV1", "DatasetV1Adapter", "get_legacy_output_classes", "get_legacy_output_shapes",
    "get_legacy_output_types", "get_structure", "make_initializable_iterator",
    "make_one_shot_iterator",
]  # fmt: skip

_log = logging.getLogger("tensorflow")

Fn = Callable[..., Any]


class DatasetV1(DatasetV2):
    """`tf.data.Dataset`: a sequence of elements, each a nested structure of tensors."""

    _keeps_count = False

    def __init__(self) -> None:
        super().__init__(self._as_variant_tensor())

    def _as_variant_tensor(self) -> Tensor:
        raise NotImplementedError("Dataset._as_variant_tensor")

    @classmethod
    def _public(cls, dataset: DatasetV2) -> Any:
        return DatasetV1Adapter(dataset)

    @classmethod
    def from_sparse_tensor_slices(cls, sparse_tensor: Any) -> Any:
        """A dataset of the rows of a sparse tensor, as (indices, values, shape)."""
        return cls._begin(steps.from_sparse_tensor_slices(sparse_tensor))

    def map_with_legacy_function(self, map_func: Fn, num_parallel_calls: Any = None) -> Any:
        """`map`, under the name for functions of TF's older kind; here there is one kind."""
        return self.map(map_func, num_parallel_calls)

    def filter_with_legacy_function(self, predicate: Fn) -> Any:
        """`filter`, under the name for functions of TF's older kind; here there is one kind."""
        return self.filter(predicate)

    def make_one_shot_iterator(self) -> Iterator:
        """An iterator that needs no initializer, and goes through the dataset once.

        Raises:
            ValueError: the dataset depends on variables, tables or placeholders.
        """
        return make_one_shot_iterator(self)

    def make_initializable_iterator(self, shared_name: str | None = None) -> Iterator:
        """An iterator that begins when its initializer runs, anew each time."""
        return make_initializable_iterator(self, shared_name)

    @property
    def output_classes(self) -> Any:
        """The structure of classes of an element."""
        return structure.legacy_classes(self.element_spec)

    @property
    def output_shapes(self) -> Any:
        """The structure of shapes of an element."""
        return structure.legacy_shapes(self.element_spec)

    @property
    def output_types(self) -> Any:
        """The structure of types of an element."""
        return structure.legacy_types(self.element_spec)

    @property
    def element_spec(self) -> Any:
        """The structure of specs of an element."""
        return structure.convert_legacy_structure(
            self.output_types, self.output_shapes, self.output_classes
        )


class DatasetV1Adapter(DatasetV1):
    """A dataset with the methods of version 1."""

    def __init__(self, dataset: DatasetV2) -> None:
        self._dataset = dataset
        super().__init__()

    def _as_variant_tensor(self) -> Tensor:
        return self._dataset._variant_tensor

    def _inputs(self) -> list[DatasetV2]:
        return self._dataset._inputs()

    def _functions(self) -> list[Any]:
        return self._dataset._functions()

    def options(self) -> Options:
        """The options."""
        return self._dataset.options()

    @property
    def element_spec(self) -> Any:
        """The structure of specs of an element."""
        return self._dataset.element_spec


def make_one_shot_iterator(dataset: DatasetV2) -> Iterator:
    """An iterator that needs no initializer; see `tf.data.Dataset.make_one_shot_iterator`.

    Args:
        dataset: a dataset.
    """
    if not isinstance(dataset, DatasetV2):
        return dataset._make_one_shot_iterator()
    if executing_eagerly():
        return EagerIterator(dataset)
    _warn_of_other_graphs(dataset)
    try:
        factory = traced_factory(lambda: dataset._apply_options()._variant_tensor)
    except ValueError as e:
        if "Cannot capture a stateful node" not in str(e):
            raise
        raise ValueError(
            "Failed to create a one-shot iterator for a dataset. "
            "`Dataset.make_one_shot_iterator()` does not support datasets that capture stateful "
            "objects, such as a `Variable` or `LookupTable`. In these cases, use "
            f"`Dataset.make_initializable_iterator()`. (Original error: {e})"
        ) from None
    resource = one_shot_iterator_op(dataset_factory=factory, **dataset._flat_structure)
    return Iterator(resource, None, *_legacy(dataset))


def make_initializable_iterator(dataset: DatasetV2, shared_name: str | None = None) -> Iterator:
    """An iterator with an initializer; see `tf.data.Dataset.make_initializable_iterator`.

    Args:
        dataset: a dataset.
        shared_name: a name under which other sessions of a server find it.
    """
    if not isinstance(dataset, DatasetV2):  # that of a strategy, which has one for each worker
        return dataset._make_initializable_iterator()
    if executing_eagerly():
        raise RuntimeError(
            "dataset.make_initializable_iterator is not supported when eager execution is enabled. "
            "Use `for element in dataset` instead."
        )
    _warn_of_other_graphs(dataset)
    walked = dataset._apply_options()
    resource = iterator_v2_op(
        container="", shared_name=shared_name or "", **dataset._flat_structure
    )
    with colocate_with(resource):
        initializer = make_iterator_op(walked._variant_tensor, resource)
    return Iterator(resource, initializer, *_legacy(dataset))


def _warn_of_other_graphs(dataset: DatasetV2) -> None:
    """Says so where a dataset of the pipeline is in another graph than its iterator is to be in."""
    graph = get_default_graph()
    left, seen = [dataset], {id(dataset)}
    while left:
        found = left.pop()
        if found._graph is not graph:
            _log.warning(
                "The dataset %s is in %s, and its iterator is to be in %s. Please ensure that all "
                "datasets in the pipeline are created in the same graph as the iterator.",
                found._variant_tensor, found._graph, graph,
            )  # fmt: skip
        for source in found._inputs():
            if id(source) not in seen:
                seen.add(id(source))
                left.append(source)


def _legacy(dataset: Any) -> tuple[Any, Any, Any]:
    spec = dataset.element_spec
    return (
        structure.legacy_types(spec), structure.legacy_shapes(spec), structure.legacy_classes(spec)
    )  # fmt: skip


def get_structure(dataset_or_iterator: Any) -> Any:
    """The structure of specs of an element; TypeError for what has no elements.

    Args:
        dataset_or_iterator: a dataset, or an iterator.
    """
    try:
        return dataset_or_iterator.element_spec
    except AttributeError:
        raise TypeError(
            "`dataset_or_iterator` must be a Dataset or Iterator object, but got "
            f"{type(dataset_or_iterator)}."
        ) from None


def get_legacy_output_classes(dataset_or_iterator: Any) -> Any:
    """The structure of classes of an element.

    Args:
        dataset_or_iterator: a dataset, or an iterator.
    """
    return structure.legacy_classes(get_structure(dataset_or_iterator))


def get_legacy_output_shapes(dataset_or_iterator: Any) -> Any:
    """The structure of shapes of an element.

    Args:
        dataset_or_iterator: a dataset, or an iterator.
    """
    return structure.legacy_shapes(get_structure(dataset_or_iterator))


def get_legacy_output_types(dataset_or_iterator: Any) -> Any:
    """The structure of types of an element.

    Args:
        dataset_or_iterator: a dataset, or an iterator.
    """
    return structure.legacy_types(get_structure(dataset_or_iterator))
