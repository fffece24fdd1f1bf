"""Datasets of what files hold: `TextLineDataset`, `TFRecordDataset`, `FixedLengthRecordDataset`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from opdock import dtypes
from opdock.data.dataset import AUTOTUNE, DatasetV2
from opdock.data.dataset_v1 import DatasetV1Adapter
from opdock.data.interleave import parallel_interleaved
from opdock.data.steps import Made, int64
from opdock.data.util import structure
from opdock.data.util.convert import optional_param_to_tensor
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.typespec import TensorSpec
from opdock.ops.array import reshape
from opdock.ops.data_sources import (
    fixed_length_record_dataset_v2_op,
    text_line_dataset_op,
    tf_record_dataset_op,
)
from opdock.shapes import TensorShape

__all__ = [
    "FixedLengthRecordDatasetV1", "FixedLengthRecordDatasetV2", "TFRecordDatasetV1",
    "TFRecordDatasetV2", "TextLineDatasetV1", "TextLineDatasetV2",
]  # fmt: skip

_BUFFER: Final = 256 * 1024


class _Files(DatasetV2):
    """The strings that files hold, file after file or several files in turn.

    Args:
        filenames: strings, or a dataset of them.
        read: makes the variant of the dataset of one file.
        num_parallel_reads: how many files are open; None for one after the other.

    Raises:
        TypeError: `filenames` is a dataset of something else.
    """

    def __init__(
        self, filenames: Any, read: Callable[[Tensor], Tensor], num_parallel_reads: Any
    ) -> None:
        self._filenames = names = _dataset_of_names(filenames)

        def read_one_file(filename: Tensor) -> Any:
            return DatasetV2._begin(Made(read(filename), TensorSpec([], dtypes.string)))

        if num_parallel_reads is None:
            self._impl = names.flat_map(read_one_file)
        elif isinstance(num_parallel_reads, int) and num_parallel_reads == AUTOTUNE:
            self._impl = names.interleave(read_one_file, num_parallel_calls=num_parallel_reads)
        else:
            self._impl = names._follow(
                parallel_interleaved(names, read_one_file, num_parallel_reads)
            )
        super().__init__(self._impl._variant_tensor)

    @property
    def element_spec(self) -> TensorSpec:
        """A string."""
        return TensorSpec([], dtypes.string)


def _dataset_of_names(filenames: Any) -> Any:
    if not isinstance(filenames, DatasetV2):
        names = convert_to_tensor(filenames, dtype=dtypes.string)
        return DatasetV2.from_tensor_slices(reshape(names, [-1], name="flat_filenames"))
    if structure.legacy_types(filenames.element_spec) != dtypes.string:
        raise TypeError("`filenames` must be a `tf.data.Dataset` of `tf.string` elements.")
    shape = structure.legacy_shapes(filenames.element_spec)
    if not shape.is_compatible_with(TensorShape([])):
        raise TypeError("`filenames` must be a `tf.data.Dataset` of scalar `tf.string` elements.")
    return filenames


def _compression(compression_type: Any) -> Tensor:
    return optional_param_to_tensor("compression_type", compression_type, "", dtypes.string)


class TextLineDatasetV2(_Files):
    """The lines of text files.

    Args:
        filenames: strings, or a dataset of strings.
        compression_type: "", "ZLIB" or "GZIP".
        buffer_size: bytes to read at once, a hint.
        num_parallel_reads: how many files are read in turn; None for one after the other.
    """

    def __init__(
        self, filenames: Any, compression_type: Any = None, buffer_size: Any = None,
        num_parallel_reads: Any = None,
    ) -> None:  # fmt: skip
        def read(filename: Tensor) -> Tensor:
            size = optional_param_to_tensor("buffer_size", buffer_size, _BUFFER)
            made: Tensor = text_line_dataset_op(filename, _compression(compression_type), size)
            return made

        super().__init__(filenames, read, num_parallel_reads)


class TFRecordDatasetV2(_Files):
    """The records of TFRecord files.

    Args:
        filenames: strings, or a dataset of strings.
        compression_type: "", "ZLIB" or "GZIP".
        buffer_size: bytes to read at once, a hint.
        num_parallel_reads: how many files are read in turn; None for one after the other.
    """

    def __init__(
        self, filenames: Any, compression_type: Any = None, buffer_size: Any = None,
        num_parallel_reads: Any = None,
    ) -> None:  # fmt: skip
        def read(filename: Tensor) -> Tensor:
            size = optional_param_to_tensor("buffer_size", buffer_size, _BUFFER)
            made: Tensor = tf_record_dataset_op(filename, _compression(compression_type), size)
            return made

        super().__init__(filenames, read, num_parallel_reads)

    def _inputs(self) -> list[DatasetV2]:
        return list(self._impl._inputs())


class FixedLengthRecordDatasetV2(_Files):
    """Records of one length in binary files.

    Args:
        filenames: strings, or a dataset of strings.
        record_bytes: the length of a record.
        header_bytes, footer_bytes: what each file begins and ends with that is no record.
        buffer_size: bytes to read at once, a hint.
        compression_type: "", "ZLIB" or "GZIP".
        num_parallel_reads: how many files are read in turn; None for one after the other.
    """

    def __init__(
        self, filenames: Any, record_bytes: Any, header_bytes: Any = None,
        footer_bytes: Any = None, buffer_size: Any = None, compression_type: Any = None,
        num_parallel_reads: Any = None,
    ) -> None:  # fmt: skip
        def read(filename: Tensor) -> Tensor:
            made: Tensor = fixed_length_record_dataset_v2_op(
                filename, optional_param_to_tensor("header_bytes", header_bytes),
                int64(record_bytes, "record_bytes"),
                optional_param_to_tensor("footer_bytes", footer_bytes),
                optional_param_to_tensor("buffer_size", buffer_size, _BUFFER),
                _compression(compression_type),
            )  # fmt: skip
            return made

        super().__init__(filenames, read, num_parallel_reads)


class TextLineDatasetV1(DatasetV1Adapter):
    """The lines of text files; see `TextLineDatasetV2` for the arguments."""

    def __init__(
        self, filenames: Any, compression_type: Any = None, buffer_size: Any = None,
        num_parallel_reads: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(
            TextLineDatasetV2(filenames, compression_type, buffer_size, num_parallel_reads)
        )


class TFRecordDatasetV1(DatasetV1Adapter):
    """The records of TFRecord files; see `TFRecordDatasetV2` for the arguments."""

    def __init__(
        self, filenames: Any, compression_type: Any = None, buffer_size: Any = None,
        num_parallel_reads: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(
            TFRecordDatasetV2(filenames, compression_type, buffer_size, num_parallel_reads)
        )


class FixedLengthRecordDatasetV1(DatasetV1Adapter):
    """Records of one length; see `FixedLengthRecordDatasetV2` for the arguments."""

    def __init__(
        self, filenames: Any, record_bytes: Any, header_bytes: Any = None,
        footer_bytes: Any = None, buffer_size: Any = None, compression_type: Any = None,
        num_parallel_reads: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(
            FixedLengthRecordDatasetV2(
                filenames, record_bytes, header_bytes, footer_bytes, buffer_size,
                compression_type, num_parallel_reads,
            )
        )  # fmt: skip
