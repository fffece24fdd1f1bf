"""Datasets that begin a pipeline: tensors, numbers, generators, files."""

from __future__ import annotations

from opdock import shapes
from opdock.ops.registry import ShapeSig
from opdock.ops.support.data import ELEMENTS, arguments_shape, dataset_op
from opdock.shapes import Shape

__all__: list[str] = []

_COMPONENTS = "Toutput_types: list(type) >= 1, output_shapes: list(shape) >= 1"
_FILES = "filenames: string, compression_type: string, buffer_size: int64"

tensor_dataset_op = dataset_op(
    "TensorDataset", "components: Toutput_types", _COMPONENTS, source=True
)
tensor_slice_dataset_op = dataset_op(
    "TensorSliceDataset", "components: Toutput_types", _COMPONENTS, source=True
)
sparse_tensor_slice_dataset_op = dataset_op(
    "SparseTensorSliceDataset", "indices: int64, values: Tvalues, dense_shape: int64",
    "Tvalues: type", source=True,
)  # fmt: skip
generator_dataset_op = dataset_op(
    "GeneratorDataset",
    "init_func_other_args: Tinit_func_args, next_func_other_args: Tnext_func_args, "
    "finalize_func_other_args: Tfinalize_func_args",
    "init_func: func, next_func: func, finalize_func: func, "
    "Tinit_func_args: list(type) >= 0, Tnext_func_args: list(type) >= 0, "
    f"Tfinalize_func_args: list(type) >= 0, {ELEMENTS}",
    source=True,
)
range_dataset_op = dataset_op("RangeDataset", "start: int64, stop: int64, step: int64", source=True)
random_dataset_op = dataset_op("RandomDataset", "seed: int64, seed2: int64", source=True)
text_line_dataset_op = dataset_op("TextLineDataset", _FILES, "", source=True, files=True)
tf_record_dataset_op = dataset_op("TFRecordDataset", _FILES, "", source=True, files=True)
_RECORDS = (
    "filenames: string, header_bytes: int64, record_bytes: int64, footer_bytes: int64, "
    "buffer_size: int64"
)
fixed_length_record_dataset_op = dataset_op(
    "FixedLengthRecordDataset", _RECORDS, "", source=True, files=True
)
fixed_length_record_dataset_v2_op = dataset_op(
    "FixedLengthRecordDatasetV2",
    f"{_RECORDS}, compression_type: string",
    "",
    source=True,
    files=True,
)
_CSV = (
    f"{_FILES}, header: bool, field_delim: string, use_quote_delim: bool, na_value: string, "
    "select_cols: int64"
)
csv_dataset_op = dataset_op(
    "CSVDataset",
    f"{_CSV}, record_defaults: output_types",
    "output_types: list({float,double,int32,int64,string}) >= 1, output_shapes: list(shape) >= 1",
    source=True,
)
_check_csv_arguments = arguments_shape(_CSV)


@csv_dataset_op.shape
def _csv(sig: ShapeSig) -> list[Shape]:
    out = _check_csv_arguments(sig)
    for default in sig.shapes[len(_CSV.split(", ")) :]:
        known = shapes.with_rank_at_most(default, 1)
        if known and known[0] is not None and known[0] > 1:
            raise ValueError(
                "Shape of a default must be a length-0 or length-1 vector, or a scalar."
            )
    return out


matching_files_dataset_op = dataset_op("MatchingFilesDataset", "patterns: string", "", source=True)
sql_dataset_op = dataset_op(
    "SqlDataset", "driver_name: string, data_source_name: string, query: string", source=True
)
lmdb_dataset_op = dataset_op("LMDBDataset", "filenames: string", source=True)
