"""What asks a dataset or an iterator as a whole."""

from __future__ import annotations

from typing import Any

from opdock import dtypes
from opdock.data.dataset import DatasetV2, VariantDataset
from opdock.data.dataset_v1 import DatasetV1, get_structure
from opdock.data.experimental.transforms import scan
from opdock.data.iterators import Iterator, IteratorSaveable
from opdock.data.util import structure
from opdock.data.util.convert import optional_param_to_tensor
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.nodes.typespec import TensorSpec
from opdock.ops.data_iterators import (
    dataset_cardinality_op,
    dataset_to_single_element_op,
    dataset_to_tf_record_op,
)

__all__ = [
    "Counter", "TFRecordWriter", "cardinality", "from_variant", "get_single_element",
    "make_saveable_from_iterator", "to_variant",
]  # fmt: skip


def cardinality(dataset: DatasetV2) -> Tensor:
    """The number of elements as a scalar of int64; -1 for no end, -2 where only a walk tells.

    Args:
        dataset: a dataset.
    """
    found: Tensor = dataset_cardinality_op(dataset._variant_tensor)
    return found


def get_single_element(dataset: DatasetV2) -> Any:
    """The one element of a dataset.

    Raises:
        TypeError: `dataset` is none. When it runs, InvalidArgumentError says that the dataset has
            no element, or several.
    """
    if not isinstance(dataset, DatasetV2):
        raise TypeError("`dataset` must be a `tf.data.Dataset` object.")
    flat = dataset_to_single_element_op(dataset._variant_tensor, **dataset._flat_structure)
    return structure.from_compatible_tensor_list(dataset.element_spec, flat)


def make_saveable_from_iterator(iterator: Iterator) -> IteratorSaveable:
    """Where an iterator stands, as something that a `tf.train.Saver` saves and restores.

    What it holds in buffers is saved with it, so that a program that goes on gets exactly the
    elements that were left.
    """
    resource = iterator._iterator_resource
    return IteratorSaveable(resource, resource.name)


def Counter(start: Any = 0, step: Any = 1, dtype: Any = dtypes.int64) -> Any:
    """A dataset that counts without end.

    Args:
        start: the first number.
        step: what is added each time.
        dtype: the element type.
    """
    first = convert_to_tensor(start, dtype=dtype, name="start")
    by = convert_to_tensor(step, dtype=dtype, name="step")
    zeros = DatasetV1.from_tensors(convert_to_tensor(0, dtype=dtype)).repeat(None)
    return zeros.apply(scan(first, lambda state, _: (state + by, state)))


def to_variant(dataset: DatasetV2) -> Tensor:
    """A dataset as a scalar variant."""
    return dataset._variant_tensor


def from_variant(variant: Tensor, structure: Any) -> VariantDataset:
    """The dataset of a scalar variant; `structure` is the structure of specs of its elements."""
    return VariantDataset(variant, structure)


class TFRecordWriter:
    """Writes a dataset to a TFRecord file.

    Args:
        filename: a scalar string.
        compression_type: "", "ZLIB" or "GZIP".
    """

    def __init__(self, filename: Any, compression_type: Any = None) -> None:
        self._filename = convert_to_tensor(filename, dtypes.string, name="filename")
        self._compression_type = optional_param_to_tensor(
            "compression_type", compression_type, "", dtypes.string
        )

    def write(self, dataset: DatasetV2) -> Operation:
        """An operation that writes the elements, scalar strings.

        Raises:
            TypeError: `dataset` is no dataset, or its elements are something else.
        """
        if not isinstance(dataset, DatasetV2):
            raise TypeError("`dataset` must be a `tf.data.Dataset` object.")
        spec = get_structure(dataset)
        if not isinstance(spec, TensorSpec) or not spec.is_compatible_with(
            TensorSpec([], dtypes.string)
        ):
            raise TypeError(
                "`dataset` must produce scalar `DT_STRING` tensors whereas it produces shape "
                f"{structure.legacy_shapes(spec)} and types {structure.legacy_types(spec)}"
            )
        made: Operation = dataset_to_tf_record_op(
            dataset._variant_tensor, self._filename, self._compression_type
        )
        return made
