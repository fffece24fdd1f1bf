"""`tf.data.Dataset`: a sequence of elements as a node of the graph."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, ClassVar, Final

from opdock import dtypes
from opdock.data import stateful, steps
from opdock.data.eager_iterator import EagerIterator
from opdock.data.files import list_files
from opdock.data.functions import should_unpack
from opdock.data.generator import generator_function
from opdock.data.options import Options
from opdock.data.spec import DatasetSpec
from opdock.data.steps import Made, int64
from opdock.data.tracked import VariantTracker, keep_inputs
from opdock.data.util import nest, structure
from opdock.graph.nodes.composite import CompositeTensor
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.graph import Graph
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.scopes import executing_eagerly
from opdock.graph.nodes.typespec import (
    BatchableTypeSpec,
    register_type_spec_from_value_converter,
)
from opdock.graph.variables.trackable import Trackable
from opdock.ops import data_elements as elements

__all__ = [
    "AUTOTUNE", "DatasetSource", "DatasetSpec", "DatasetV2", "NestedVariant", "Options",
    "UnaryDataset", "UnaryUnchangedStructureDataset", "VariantDataset",
]  # fmt: skip

AUTOTUNE: Final = -1
Fn = Callable[..., Any]


class DatasetV2(CompositeTensor, Trackable):
    """A sequence of elements, each a nested structure of tensors.

    Args:
        variant_tensor: the node that makes it.
    """

    _keeps_count: ClassVar[bool] = True

    def __init__(self, variant_tensor: Tensor) -> None:
        self._variant_tensor_attr = variant_tensor
        keep_inputs(variant_tensor)

    def _maybe_initialize_trackable(self) -> None:
        if "_self_dependencies" not in self.__dict__:
            super()._maybe_initialize_trackable()
            # By this functions of a model that take the dataset from outside find it.
            self._track_trackable(VariantTracker(self._variant_tensor), "_variant_tracker")

    # ------------------------------------------------------------ what it is
    @property
    def _variant_tensor(self) -> Tensor:
        return self._variant_tensor_attr

    @property
    def element_spec(self) -> Any:
        """The structure of specs of an element."""
        raise NotImplementedError("Dataset.element_spec")

    @property
    def _graph(self) -> Graph:
        return self._variant_tensor._op.graph

    def _as_serialized_graph(self, stateful_whitelist: bool = False) -> Tensor:
        """The nodes that make the dataset, as a GraphDef's bytes."""
        from opdock.api.graph_util import extract_sub_graph

        graph_def = self._graph.as_graph_def(add_shapes=False)
        made = extract_sub_graph(graph_def, [self._variant_tensor.op.name])
        return convert_to_tensor(made.SerializeToString(deterministic=True), dtypes.string)

    @property
    def _flat_shapes(self) -> list[Any]:
        return structure.get_flat_tensor_shapes(self.element_spec)

    @property
    def _flat_types(self) -> list[Any]:
        return structure.get_flat_tensor_types(self.element_spec)

    @property
    def _flat_structure(self) -> dict[str, Any]:
        return structure.flat_structure(self.element_spec)

    @property
    def _type_spec(self) -> DatasetSpec:
        return DatasetSpec(self.element_spec)

    def _inputs(self) -> list[DatasetV2]:
        return []

    def _functions(self) -> list[Any]:
        return []

    def options(self) -> Options:
        """The options of this dataset and of those that it follows from."""
        found = Options()
        for source in self._inputs():
            found = found.merge(source.options())
        return found

    def _apply_options(self) -> DatasetV2:
        """The dataset as an iterator walks through it."""
        options = self.options()
        found: DatasetV2 = self
        threads = options.experimental_threading.private_threadpool_size
        if threads is not None:
            op = elements.private_thread_pool_dataset_op
            found = _MadeDataset(steps.unchanged(op, found, int64(threads, "num_threads")), [found])
        names = options._rewrites()
        if names:
            rewrites = convert_to_tensor(names, dtypes.string, name="optimizations")
            op = elements.optimize_dataset_op
            found = _MadeDataset(steps.unchanged(op, found, rewrites), [found])
        stats = options.experimental_stats
        if stats.aggregator is not None:
            given = stats.aggregator, stats.prefix, stats.counter_prefix
            found = _MadeDataset(steps.with_aggregator(found, *given), [found])
        return found

    def __iter__(self) -> Any:
        if executing_eagerly():
            return EagerIterator(self)
        raise RuntimeError(
            "__iter__() is only supported inside of tf.function or when eager execution is enabled."
        )

    def _staged_loop(self, extra_test: Any, body: Fn, state: Any) -> None:
        from opdock.data.loops import over_dataset

        over_dataset(self, extra_test, body, state)

    def __repr__(self) -> str:
        shapes = nest.map_structure(str, structure.legacy_shapes(self.element_spec))
        types = nest.map_structure(repr, structure.legacy_types(self.element_spec))
        told = (str(x).replace("'", "") for x in (shapes, types))
        return "<{} shapes: {}, types: {}>".format(type(self).__name__, *told)

    # ------------------------------------------------------------ how others are made
    @classmethod
    def _public(cls, dataset: DatasetV2) -> Any:
        """A new dataset as methods of this class give it."""
        return dataset

    @classmethod
    def _begin(cls, made: Made) -> Any:
        """A dataset that follows from none."""
        return cls._public(_MadeDataset(made, []))

    def _follow(self, made: Made, *others: DatasetV2) -> Any:
        """A dataset that follows from this one."""
        return self._public(_MadeDataset(made, [self, *others]))

    # ------------------------------------------------------------ sources
    @classmethod
    def from_tensors(cls, tensors: Any) -> Any:
        """A dataset of one element, `tensors`."""
        return cls._begin(steps.from_tensors(tensors))

    @classmethod
    def from_tensor_slices(cls, tensors: Any) -> Any:
        """A dataset of the slices of `tensors` along their first dimension.

        Raises:
            ValueError: a tensor is a scalar, or their sizes differ.
        """
        return cls._begin(steps.from_tensor_slices(tensors))

    @classmethod
    def from_generator(
        cls, generator: Fn, output_types: Any = None, output_shapes: Any = None, args: Any = None,
        output_signature: Any = None,
    ) -> Any:  # fmt: skip
        """A dataset of what a Python generator yields.

        Args:
            generator: takes `args` as arrays, and gives an iterable; called for each walk.
            output_types: the structure of types of an element.
            output_shapes: the structure of shapes.
            args: tensors.
            output_signature: types and shapes as a structure of specs, as TensorFlow 2 takes them.

        Raises:
            TypeError: `generator` is not callable, or nothing says what types it yields. When it
                runs, what it yields is checked against types and shapes.
        """
        if output_signature is not None:
            output_types = structure.legacy_types(output_signature)
            output_shapes = structure.legacy_shapes(output_signature)
        elif output_types is None:
            raise TypeError("from_generator() needs `output_types`.")
        make = generator_function(generator, output_types, output_shapes, args)
        return cls.from_tensors(0).flat_map(lambda dummy: cls._begin(make(dummy)))

    @classmethod
    def range(cls, *args: Any) -> Any:
        """A dataset of integers, as Python's `range` counts them."""
        return cls._begin(steps.range_(*args))

    @classmethod
    def zip(cls, datasets: Any) -> Any:
        """A dataset of elements side by side, in the nested structure of `datasets`."""
        return cls._public(_MadeDataset(steps.zip_(datasets), nest.flatten(datasets)))

    @classmethod
    def list_files(cls, file_pattern: Any, shuffle: bool | None = None, seed: Any = None) -> Any:
        """A dataset of the names of the files that match patterns, in random order by default.

        Raises:
            tf.errors.InvalidArgumentError: when it runs, if no file matches.
        """
        return list_files(cls, file_pattern, shuffle, seed)

    # ------------------------------------------------------------ elements as they are
    def concatenate(self, dataset: Any) -> Any:
        """The elements of this dataset and then those of another one."""
        return self._follow(steps.concatenate(self, dataset), dataset)

    def _unchanged(self, op: Any, *arguments: Any, **attrs: Any) -> Any:
        return self._follow(steps.unchanged(op, self, *arguments, **attrs))

    def prefetch(self, buffer_size: Any) -> Any:
        """The same elements, up to `buffer_size` of them made ahead."""
        size = int64(-1 if buffer_size is None else buffer_size, "buffer_size")
        return self._unchanged(elements.prefetch_dataset_op, size)

    def repeat(self, count: Any = None) -> Any:
        """The elements `count` times; without end for None and -1."""
        return self._unchanged(
            elements.repeat_dataset_op, int64(-1 if count is None else count, "count")
        )

    def enumerate(self, start: Any = 0) -> Any:
        """The elements with their numbers."""
        numbers = type(self)._numbers(start)
        return type(self).zip((numbers, self))

    @classmethod
    def _numbers(cls, start: Any) -> Any:
        return cls.range(start, dtypes.int64.max)

    def shuffle(
        self, buffer_size: Any, seed: Any = None, reshuffle_each_iteration: bool | None = None
    ) -> Any:
        """The elements in random order, each drawn from the next `buffer_size`."""
        return self._follow(steps.shuffle(self, buffer_size, seed, reshuffle_each_iteration))

    def cache(self, filename: Any = "") -> Any:
        """The same elements, kept in memory or in a file from the first walk on."""
        name = convert_to_tensor(filename, dtype=dtypes.string, name="filename")
        return self._unchanged(elements.cache_dataset_op, name)

    def take(self, count: Any) -> Any:
        """At most the first `count` elements; all for -1."""
        return self._unchanged(elements.take_dataset_op, int64(count, "count"))

    def skip(self, count: Any) -> Any:
        """What follows the first `count` elements; nothing for -1."""
        return self._unchanged(elements.skip_dataset_op, int64(count, "count"))

    def shard(self, num_shards: Any, index: Any) -> Any:
        """Every `num_shards`-th element, from number `index` on."""
        given = int64(num_shards, "num_shards"), int64(index, "index")
        return self._unchanged(elements.shard_dataset_op, *given)

    # ------------------------------------------------------------ batches
    def batch(self, batch_size: Any, drop_remainder: Any = False) -> Any:
        """Stacks of `batch_size` elements; a smaller last one is kept or dropped."""
        return self._follow(steps.batch(self, batch_size, drop_remainder))

    def padded_batch(
        self, batch_size: Any, padded_shapes: Any, padding_values: Any = None,
        drop_remainder: Any = False,
    ) -> Any:  # fmt: skip
        """Stacks of elements, each padded to a shape, or, where it is unknown, to the largest.

        Args:
            batch_size: of how many elements.
            padded_shapes: the structure of shapes; None or -1 for what the largest element has.
            padding_values: the structure of scalars; zeros and empty strings by default.
            drop_remainder: whether a smaller last batch is dropped.
        """
        made = steps.padded_batch(self, batch_size, padded_shapes, padding_values, drop_remainder)
        return self._follow(made)

    def unbatch(self) -> Any:
        """The slices of elements, one by one."""
        return self._follow(steps.unbatch(self._with_rows()))

    def _with_rows(self) -> DatasetV2:
        """The same dataset with an entry for each row of sparse and ragged tensors."""
        spec = self.element_spec
        if not any(_has_own_rows(s) for s in nest.flatten(spec)):
            return self

        def batched(*element: Any) -> Any:
            whole = element if should_unpack(spec) else element[0]
            return tuple(structure.to_batched_tensor_list(spec, whole))

        made = steps.map_(self, batched, None, name="normalize_to_dense")
        return _MadeDataset(made._replace(spec=spec), [self])

    def window(
        self, size: Any, shift: Any = None, stride: Any = 1, drop_remainder: Any = False
    ) -> Any:
        """Datasets of `size` elements that are `stride` apart and begin `shift` after the last."""
        return self._follow(steps.window(self, size, shift, stride, drop_remainder))

    # ------------------------------------------------------------ functions
    def map(self, map_func: Fn, num_parallel_calls: Any = None) -> Any:
        """A function of each element, of `num_parallel_calls` at once."""
        return self._follow(
            steps.map_(
                self, map_func, num_parallel_calls, keeps_count=self._keeps_count
            )
        )  # fmt: skip

    def flat_map(self, map_func: Fn) -> Any:
        """The elements of the datasets that a function makes, one dataset after the other."""
        return self._follow(steps.flat_map(self, map_func))

    def interleave(
        self, map_func: Fn, cycle_length: Any = AUTOTUNE, block_length: Any = 1,
        num_parallel_calls: Any = None,
    ) -> Any:  # fmt: skip
        """The elements of the datasets that a function makes, `block_length` of each in turn.

        Args:
            map_func: from an element to a dataset.
            cycle_length: how many datasets are open.
            block_length: how many elements of one come in a row.
            num_parallel_calls: from how many datasets elements are taken at once.
        """
        if isinstance(cycle_length, int) and cycle_length == AUTOTUNE:
            cycle_length = os.cpu_count() or 1
            if isinstance(num_parallel_calls, int) and num_parallel_calls != AUTOTUNE:
                cycle_length = max(cycle_length, num_parallel_calls)
        made = steps.interleave(self, map_func, cycle_length, block_length, num_parallel_calls)
        return self._follow(made)

    def filter(self, predicate: Fn) -> Any:
        """The elements of which a predicate holds."""
        return self._follow(steps.filter_(self, predicate))

    def apply(self, transformation_func: Fn) -> Any:
        """What a function makes of this dataset.

        Raises:
            TypeError: it makes no dataset.
        """
        dataset = transformation_func(self)
        if not isinstance(dataset, DatasetV2):
            raise TypeError(f"`transformation_func` must return a Dataset. Got {dataset}.")
        return self._public(dataset)

    def reduce(self, initial_state: Any, reduce_func: Fn) -> Any:
        """The last state of a function that goes from a state and an element to the next state.

        Raises:
            TypeError: the function gives another kind of state than the first.
        """
        return stateful.reduce(self, initial_state, reduce_func)

    def with_options(self, options: Options) -> Any:
        """The same dataset with options.

        Raises:
            ValueError: they contradict those that it has.
        """
        return self._public(OptionsDataset(self, options))


def _has_own_rows(spec: Any) -> bool:
    """Whether values have one tensor as a whole and another one to take slices of."""
    default = BatchableTypeSpec._to_batched_tensor_list
    return getattr(type(spec), "_to_batched_tensor_list", default) is not default


class _MadeDataset(DatasetV2):
    """A dataset that a node makes."""

    def __init__(self, made: Made, inputs: list[DatasetV2]) -> None:
        super().__init__(made.variant)
        self._spec, self._made_from, self._made_functions = made.spec, inputs, made.functions

    @property
    def element_spec(self) -> Any:
        return self._spec

    def _inputs(self) -> list[DatasetV2]:
        return list(self._made_from)

    def _functions(self) -> list[Any]:
        return list(self._made_functions)


class VariantDataset(DatasetV2):
    """The dataset that a variant holds.

    Args:
        dataset_variant: the variant.
        element_spec: the structure of specs of its elements.
    """

    def __init__(self, dataset_variant: Tensor, element_spec: Any) -> None:
        super().__init__(dataset_variant)
        self._spec = element_spec

    @property
    def element_spec(self) -> Any:
        """The structure of specs of an element."""
        return self._spec


class NestedVariant:
    """A tensor of datasets."""

    def __init__(self, variant_tensor: Tensor, element_spec: Any, dataset_shape: Any) -> None:
        self._variant_tensor = variant_tensor
        self._element_spec = element_spec
        self._dataset_shape = dataset_shape

    @property
    def _type_spec(self) -> DatasetSpec:
        return DatasetSpec(self._element_spec, self._dataset_shape)


class DatasetSource(DatasetV2):
    """A dataset that follows from none: for subclasses that make nodes of their own."""


class UnaryDataset(DatasetV2):
    """A dataset that follows from one other: for subclasses that make nodes of their own."""

    def __init__(self, input_dataset: DatasetV2, variant_tensor: Tensor) -> None:
        self._input_dataset = input_dataset
        super().__init__(variant_tensor)

    def _inputs(self) -> list[DatasetV2]:
        return [self._input_dataset]


class UnaryUnchangedStructureDataset(UnaryDataset):
    """A dataset with elements of the kind of another one's."""

    @property
    def element_spec(self) -> Any:
        """The structure of specs of an element."""
        return self._input_dataset.element_spec


class OptionsDataset(UnaryUnchangedStructureDataset):
    """A dataset with options."""

    def __init__(self, input_dataset: DatasetV2, options: Options) -> None:
        super().__init__(input_dataset, input_dataset._variant_tensor)
        self._merged: Options = input_dataset.options().merge(options)

    def options(self) -> Options:
        return self._merged


register_type_spec_from_value_converter(DatasetV2, DatasetSpec.from_value, allow_subclass=True)
