"""Datasets of parsed files: rows of CSV, examples of TFRecord files, rows of databases."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from opdock import dtypes
from opdock.data.dataset import AUTOTUNE, DatasetV2
from opdock.data.dataset_v1 import DatasetV1, DatasetV1Adapter
from opdock.data.experimental.columns import (
    column_names_of,
    default_of,
    files_of,
    inferred_defaults,
    opener_of,
    sorted_columns,
)
from opdock.data.experimental.transforms import (
    ignore_errors as ignoring_errors,
)
from opdock.data.experimental.transforms import parallel_interleave, shuffle_and_repeat
from opdock.data.options import Options
from opdock.data.readers import TFRecordDatasetV1
from opdock.data.steps import Made
from opdock.data.util import nest, structure
from opdock.data.util.convert import optional_param_to_tensor
from opdock.graph.nodes.convert import convert_n_to_tensor, convert_to_tensor
from opdock.graph.nodes.typespec import TensorSpec
from opdock.ops.composed.example_features import parse_example
from opdock.ops.composed.readers import ReaderBase
from opdock.ops.data_sources import csv_dataset_op, lmdb_dataset_op, sql_dataset_op

__all__ = [
    "CsvDataset", "LMDBDataset", "SqlDataset", "make_batched_features_dataset", "make_csv_dataset",
    "make_tf_record_dataset", "parse_example_dataset",
]  # fmt: skip

_BUFFER: Final = 4 * 1024 * 1024


class CsvDataset(DatasetV1Adapter):
    """The rows of CSV files (RFC 4180) as tuples.

    Args:
        filenames: strings.
        record_defaults: for each column a type, where a field must be there, or a tensor of one
            element that stands in for a missing field.
        compression_type: "", "ZLIB" or "GZIP".
        buffer_size: bytes to read at once, a hint.
        header: whether the first row of each file is left out.
        field_delim: what separates fields, one character.
        use_quote_delim: whether double quotes enclose fields.
        na_value: what stands for a missing field, as the empty field does.
        select_cols: the numbers of the columns to keep, in order.
    """

    def __init__(
        self, filenames: Any, record_defaults: Any, compression_type: Any = None,
        buffer_size: Any = None, header: Any = False, field_delim: Any = ",",
        use_quote_delim: Any = True, na_value: Any = "", select_cols: Any = None,
    ) -> None:  # fmt: skip
        defaults = convert_n_to_tensor(
            [default_of(d) for d in record_defaults], name="record_defaults"
        )
        spec = tuple(TensorSpec([], d.dtype) for d in defaults)
        variant = csv_dataset_op(
            convert_to_tensor(filenames, dtype=dtypes.string, name="filenames"),
            optional_param_to_tensor("compression_type", compression_type, "", dtypes.string),
            optional_param_to_tensor("buffer_size", buffer_size, _BUFFER),
            convert_to_tensor(header, dtype=dtypes.bool, name="header"),
            convert_to_tensor(field_delim, dtype=dtypes.string, name="field_delim"),
            convert_to_tensor(use_quote_delim, dtype=dtypes.bool, name="use_quote_delim"),
            convert_to_tensor(na_value, dtype=dtypes.string, name="na_value"),
            optional_param_to_tensor("select_cols", select_cols, [], dtypes.int64), defaults,
            output_shapes=structure.flat_structure(spec)["output_shapes"],
        )  # fmt: skip
        super().__init__(DatasetV2._begin(Made(variant, spec)))


class SqlDataset(DatasetV1Adapter):
    """The rows that a query finds in a database.

    Args:
        driver_name: "sqlite".
        data_source_name: the file of the database.
        query: in SQL.
        output_types: a tuple of a type for each column.
    """

    def __init__(
        self, driver_name: Any, data_source_name: Any, query: Any, output_types: Any
    ) -> None:
        spec = nest.map_structure(lambda dtype: TensorSpec([], dtype), output_types)
        given = [
            convert_to_tensor(value, dtype=dtypes.string, name=name)
            for value, name in (
                (driver_name, "driver_name"), (data_source_name, "data_source_name"),
                (query, "query"),
            )
        ]  # fmt: skip
        variant = sql_dataset_op(*given, **structure.flat_structure(spec))
        super().__init__(DatasetV2._begin(Made(variant, spec)))


class LMDBDataset(DatasetV1Adapter):
    """The keys and values of LMDB databases, which the package `lmdb` reads.

    Args:
        filenames: a scalar or a vector of strings.
    """

    def __init__(self, filenames: Any) -> None:
        spec = TensorSpec([], dtypes.string), TensorSpec([], dtypes.string)
        names = convert_to_tensor(filenames, dtype=dtypes.string, name="filenames")
        variant = lmdb_dataset_op(names, **structure.flat_structure(spec))
        super().__init__(DatasetV2._begin(Made(variant, spec)))


# ---------------------------------------------------------------- whole pipelines
def _shuffled(dataset: Any, epochs: int | None, shuffle: bool, size: int, seed: Any) -> Any:
    if shuffle and epochs != 1:
        return dataset.apply(shuffle_and_repeat(size, epochs, seed))
    if shuffle:
        return dataset.shuffle(size, seed)
    return dataset if epochs == 1 else dataset.repeat(epochs)


def make_csv_dataset(
    file_pattern: Any, batch_size: int, column_names: Any = None, column_defaults: Any = None,
    label_name: str | None = None, select_columns: Any = None, field_delim: str = ",",
    use_quote_delim: bool = True, na_value: str = "", header: bool = True,
    num_epochs: int | None = None, shuffle: bool = True, shuffle_buffer_size: int = 10000,
    shuffle_seed: int | None = None, prefetch_buffer_size: int | None = None,
    num_parallel_reads: int | None = None, sloppy: bool = False,
    num_rows_for_inference: int | None = 100, compression_type: Any = None,
    ignore_errors: bool = False,
) -> Any:  # fmt: skip
    """Batches of the rows of CSV files, as dicts from names of columns to tensors.

    Args:
        file_pattern: a pattern, or several.
        batch_size: of how many rows.
        column_names: of all columns; read from the header by default.
        column_defaults: as of `CsvDataset`, of the chosen columns; by default types are inferred
            from the first rows.
        label_name: the column that comes beside the dict rather than in it.
        select_columns: names or numbers of the columns to keep.
        field_delim, use_quote_delim, na_value, header, compression_type: as of `CsvDataset`.
        num_epochs: how often the rows come; without end by default.
        shuffle, shuffle_buffer_size, shuffle_seed: whether and how they are shuffled.
        prefetch_buffer_size: how many batches are made ahead.
        num_parallel_reads: how many files are read in turn.
        sloppy: whether the order may depend on what is ready.
        num_rows_for_inference: how many rows are read for types; all for None.
        ignore_errors: whether rows that cannot be read are left out.

    Raises:
        ValueError: no file matches, or columns and names do not fit.
    """
    filenames = files_of(file_pattern)
    dataset = DatasetV1.from_tensor_slices(filenames)
    if shuffle:
        dataset = dataset.shuffle(len(filenames), shuffle_seed)
    if column_names is None or column_defaults is None:
        opened = opener_of(compression_type)
    if column_names is None:
        if not header:
            raise ValueError("Cannot infer column names without a header line.")
        column_names = column_names_of(filenames, field_delim, use_quote_delim, opened)
    if len(column_names) != len(set(column_names)):
        raise ValueError("Cannot have duplicate column names.")
    chosen = None if select_columns is None else sorted_columns(select_columns, column_names)
    if column_defaults is None:
        column_defaults = inferred_defaults(
            filenames, len(column_names), chosen, field_delim, use_quote_delim, na_value, header,
            num_rows_for_inference, opened,
        )  # fmt: skip
    else:
        column_defaults = [default_of(d) for d in column_defaults]
    if chosen is not None and len(column_defaults) != len(chosen):
        raise ValueError("If specified, column_defaults and select_columns must have same length.")
    names = list(column_names) if chosen is None else [column_names[i] for i in chosen]
    if label_name is not None and label_name not in names:
        raise ValueError("`label_name` provided must be one of the columns.")

    def rows(filename: Any) -> Any:
        found: Any = CsvDataset(
            filename, column_defaults, compression_type, header=header, field_delim=field_delim,
            use_quote_delim=use_quote_delim, na_value=na_value, select_cols=chosen,
        )  # fmt: skip
        return found.apply(ignoring_errors()) if ignore_errors else found

    def named(*columns: Any) -> Any:
        features = OrderedDict(zip(names, columns, strict=True))
        if label_name is None:
            return features
        label = features.pop(label_name)
        return features, label

    dataset = _interleaved(dataset, rows, num_parallel_reads, sloppy)
    dataset = _shuffled(dataset, num_epochs, shuffle, shuffle_buffer_size, shuffle_seed)
    dataset = dataset.batch(batch_size, drop_remainder=num_epochs is None).map(named)
    return dataset.prefetch(AUTOTUNE if prefetch_buffer_size is None else prefetch_buffer_size)


def _interleaved(dataset: Any, read: Any, parallel: int | None, sloppy: bool) -> Any:
    if parallel != AUTOTUNE:
        cycle = 1 if parallel is None else parallel
        return dataset.apply(parallel_interleave(read, cycle_length=cycle, sloppy=sloppy))
    options = Options()
    options.experimental_deterministic = not sloppy
    return dataset.interleave(read, num_parallel_calls=parallel).with_options(options)


def make_batched_features_dataset(
    file_pattern: Any, batch_size: int, features: Mapping[str, Any],
    reader: Callable[..., Any] = TFRecordDatasetV1, label_key: str | None = None,
    reader_args: Sequence[Any] | None = None, num_epochs: int | None = None, shuffle: bool = True,
    shuffle_buffer_size: int = 10000, shuffle_seed: int | None = None,
    prefetch_buffer_size: int | None = None, reader_num_threads: int | None = None,
    parser_num_threads: int | None = None, sloppy_ordering: bool = False,
    drop_final_batch: bool = False,
) -> Any:  # fmt: skip
    """Batches of the features of serialized Examples in files, as dicts.

    Args:
        file_pattern: a pattern, or several.
        batch_size: of how many examples.
        features: names to what `tf.io.parse_example` takes.
        reader: makes a dataset of a file; of pairs, the second is the example.
        label_key: the feature that comes beside the dict rather than in it.
        reader_args: further arguments of the reader.
        num_epochs: how often the examples come; without end by default.
        shuffle, shuffle_buffer_size, shuffle_seed: whether and how they are shuffled.
        prefetch_buffer_size: how many batches are made ahead.
        reader_num_threads, parser_num_threads: how many files are read, and batches parsed, at
            once.
        sloppy_ordering: whether the order may depend on what is ready.
        drop_final_batch: whether a smaller last batch is dropped.

    Raises:
        TypeError: `reader` is one of the readers of queues.
        ValueError: no file matches, or `label_key` is none of the features.
    """
    _refuse_reader_of_queues(reader)
    filenames = files_of(file_pattern)
    dataset = DatasetV1.from_tensor_slices(filenames)
    if shuffle:
        dataset = dataset.shuffle(len(filenames), shuffle_seed)
    arguments = () if reader_args is None else tuple(reader_args)
    dataset = dataset.apply(
        parallel_interleave(
            lambda filename: reader(filename, *arguments),
            cycle_length=1 if reader_num_threads is None else reader_num_threads,
            sloppy=sloppy_ordering,
        )
    )
    if structure.legacy_types(dataset.element_spec) == (dtypes.string, dtypes.string):
        dataset = dataset.map(lambda _, example: example)
    dataset = _shuffled(dataset, num_epochs, shuffle, shuffle_buffer_size, shuffle_seed)
    dataset = dataset.batch(batch_size, drop_remainder=drop_final_batch or num_epochs is None)
    threads = 2 if parser_num_threads is None else parser_num_threads
    dataset = dataset.apply(parse_example_dataset(features, num_parallel_calls=threads))
    if label_key:
        if label_key not in features:
            raise ValueError(
                f"The `label_key` provided ({label_key!r}) must be one of the `features` keys."
            )
        dataset = dataset.map(lambda parsed: (parsed, parsed.pop(label_key)))
    return dataset.prefetch(AUTOTUNE if prefetch_buffer_size is None else prefetch_buffer_size)


def _refuse_reader_of_queues(reader: Any) -> None:
    if isinstance(reader, type) and issubclass(reader, ReaderBase):
        raise TypeError(
            "The `reader` argument must return a `Dataset` object. `tf.ReaderBase` subclasses are "
            f"not supported: there is tf.data.TFRecordDataset in the place of {reader.__name__}."
        )


def make_tf_record_dataset(
    file_pattern: Any, batch_size: int, parser_fn: Callable[..., Any] | None = None,
    num_epochs: int | None = None, shuffle: bool = True, shuffle_buffer_size: int | None = None,
    shuffle_seed: int | None = None, prefetch_buffer_size: int | None = None,
    num_parallel_reads: int | None = None, num_parallel_parser_calls: int | None = None,
    drop_final_batch: bool = False,
) -> Any:  # fmt: skip
    """Batches of the records of TFRecord files.

    Args:
        file_pattern: a pattern, or several.
        batch_size: of how many records.
        parser_fn: of a record; by default the records come as they are.
        num_epochs, shuffle, shuffle_buffer_size, shuffle_seed, prefetch_buffer_size,
            drop_final_batch: as of `make_batched_features_dataset`.
        num_parallel_reads: how many files are read in turn; 24 by default.
        num_parallel_parser_calls: how many records are parsed at once; a batch by default.
    """
    files = DatasetV1.list_files(file_pattern, shuffle=shuffle, seed=shuffle_seed)
    dataset: Any = TFRecordDatasetV1(files, num_parallel_reads=num_parallel_reads or 24)
    dataset = _shuffled(dataset, num_epochs, shuffle, shuffle_buffer_size or 10000, shuffle_seed)
    if parser_fn is not None:
        dataset = dataset.map(parser_fn, num_parallel_calls=num_parallel_parser_calls or batch_size)
    dataset = dataset.batch(batch_size, drop_remainder=drop_final_batch or num_epochs is None)
    ahead = AUTOTUNE if prefetch_buffer_size is None else prefetch_buffer_size
    return dataset.prefetch(ahead) if ahead else dataset


def parse_example_dataset(features: Any, num_parallel_calls: Any = 1) -> Callable[[Any], Any]:
    """The features of batches of serialized Examples, as dicts.

    Args:
        features: names to what `tf.io.parse_example` takes.
        num_parallel_calls: how many batches are parsed at once.

    Raises:
        ValueError: there are no features.
        TypeError: when applied, if elements are no vectors of strings.
    """
    if features is None:
        raise ValueError(f"Missing: features was {features}.")

    def apply(dataset: Any) -> Any:
        spec = dataset.element_spec
        if not structure.are_compatible(spec, TensorSpec([None], dtypes.string)):
            raise TypeError("Input dataset should be a dataset of vectors of strings")
        return dataset.map(lambda serialized: parse_example(serialized, features),
                           num_parallel_calls=num_parallel_calls)  # fmt: skip

    return apply
