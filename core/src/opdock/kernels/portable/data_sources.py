"""Kernels that make datasets of tensors, numbers, generators and files."""

from __future__ import annotations

from typing import Any

import numpy as np

from opdock.kernels.data import csv, files, sources
from opdock.kernels.data.base import Dataset, declared, invalid, scalar_int
from opdock.kernels.data.binding import Make, captured, hosted, scalar_text
from opdock.kernels.data.lmdb import LMDBDataset
from opdock.kernels.data.memory import held
from opdock.kernels.select.signature import NodeSig

__all__: list[str] = []


def _components(values: tuple[Any, ...]) -> list[Any]:
    return [v if isinstance(v, np.ndarray) or not np.isscalar(v) else np.asarray(v) for v in values]


@hosted("TensorDataset", inputs="components")
def tensor(sig: NodeSig) -> Make:
    """One element."""
    types, shapes = declared(sig)
    return lambda *values: sources.TensorDataset(tuple(_components(values)), types, shapes)


@hosted("TensorSliceDataset", inputs="components")
def tensor_slice(sig: NodeSig) -> Make:
    """The slices of tensors."""
    types, shapes = declared(sig)
    return lambda *values: sources.TensorSliceDataset(
        [np.asarray(v) for v in values], types, shapes
    )


@hosted("SparseTensorSliceDataset", inputs="indices values dense_shape")
def sparse_tensor_slice(sig: NodeSig) -> Make:
    """The rows of a sparse tensor."""
    dtype = sig.attrs["Tvalues"].base_dtype
    return lambda i, v, s: sources.SparseSliceDataset(
        np.asarray(i), np.asarray(v), np.asarray(s), dtype
    )


@hosted(
    "GeneratorDataset", inputs="init_func_other_args next_func_other_args finalize_func_other_args"
)
def generator(sig: NodeSig) -> Make:
    """What functions give; where `_held` says so, in the memory of the node's device."""
    types, shapes = declared(sig)
    first = len(sig.attrs["Tinit_func_args"])
    second = first + len(sig.attrs["Tnext_func_args"])

    def run(*values: Any) -> Dataset:
        dataset = sources.GeneratorDataset(
            captured(sig, "init_func", values[:first]),
            captured(sig, "next_func", values[first:second]),
            captured(sig, "finalize_func", values[second:]), types, shapes,
        )  # fmt: skip
        return held(dataset, sig.device) if sig.attrs.get("_held") else dataset

    return run


@hosted("RangeDataset", inputs="start stop step")
def numbers(sig: NodeSig) -> Make:
    """Integers."""
    types, shapes = declared(sig)

    def run(start: Any, stop: Any, step: Any) -> Dataset:
        return sources.RangeDataset(
            scalar_int(start, "start"), scalar_int(stop, "stop"), scalar_int(step, "step"), types,
            shapes,
        )  # fmt: skip

    return run


@hosted("RandomDataset", inputs="seed seed2")
def random(sig: NodeSig) -> Make:
    """Random words."""
    types, shapes = declared(sig)
    return lambda a, b: sources.RandomDataset(*sources.seeds_or_fresh(a, b), types, shapes)


# ---------------------------------------------------------------- files
@hosted("TextLineDataset", inputs="filenames compression_type buffer_size")
def text_line(sig: NodeSig) -> Make:
    """Lines of files."""
    return lambda names, compression, size: files.TextLineDataset(
        names, scalar_text(compression, "compression_type"), scalar_int(size, "buffer_size")
    )


@hosted("TFRecordDataset", inputs="filenames compression_type buffer_size")
def tf_record(sig: NodeSig) -> Make:
    """Records of TFRecord files."""
    return lambda names, compression, size: files.TFRecordDataset(
        names, scalar_text(compression, "compression_type"), max(0, scalar_int(size, "buffer_size"))
    )


_RECORDS = "filenames header_bytes record_bytes footer_bytes buffer_size"


def _fixed(names: Any, *numbers: Any, compression: str = "") -> Dataset:
    header, record, footer, size = (
        scalar_int(v, n) for v, n in zip(numbers, _RECORDS.split()[1:], strict=True)
    )
    return files.FixedLengthRecordDataset(names, header, record, footer, size, compression)


@hosted("FixedLengthRecordDataset", inputs=_RECORDS)
def fixed_length(sig: NodeSig) -> Make:
    """Records of one length."""
    return _fixed


@hosted("FixedLengthRecordDatasetV2", inputs=f"{_RECORDS} compression_type")
def fixed_length_v2(sig: NodeSig) -> Make:
    """The same of files that may be compressed."""
    return lambda *given: _fixed(
        *given[:-1], compression=scalar_text(given[-1], "compression_type")
    )


@hosted(
    "CSVDataset",
    inputs="filenames compression_type buffer_size header field_delim use_quote_delim na_value "
    "select_cols record_defaults",
)
def csv_rows(sig: NodeSig) -> Make:
    """Rows of CSV files."""
    types, shapes = declared(sig)

    def run(
        names: Any, compression: Any, size: Any, header: Any, mark: Any, quotes: Any, missing: Any,
        columns: Any, *defaults: Any,
    ) -> Dataset:  # fmt: skip
        if scalar_int(size, "buffer_size") <= 0:
            raise invalid("buffer_size should be positive")
        return csv.CsvDataset(
            names, scalar_text(compression, "compression_type"), int(size), bool(header),
            scalar_text(mark, "field_delim").encode(), bool(quotes),
            scalar_text(missing, "na_value").encode(), [int(c) for c in columns], defaults, types,
            shapes,
        )  # fmt: skip

    return run


@hosted("MatchingFilesDataset", inputs="patterns")
def matching_files(sig: NodeSig) -> Make:
    """Names of files."""
    return files.MatchingFilesDataset


@hosted("SqlDataset", inputs="driver_name data_source_name query")
def sql(sig: NodeSig) -> Make:
    """Rows of a query."""
    types, shapes = declared(sig)

    def run(driver: Any, source: Any, query: Any) -> Dataset:
        return files.SqlDataset(
            scalar_text(driver, "driver_name"), scalar_text(source, "data_source_name"),
            scalar_text(query, "query"), types, shapes,
        )  # fmt: skip

    return run


@hosted("LMDBDataset", inputs="filenames")
def lmdb(sig: NodeSig) -> Make:
    """Pairs of keys and values."""
    types, shapes = declared(sig)
    return lambda names: LMDBDataset(names, types, shapes)
