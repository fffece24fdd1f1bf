"""Datasets that call functions of the user's, and what reduces a dataset by one."""

from __future__ import annotations

from opdock.ops.registry import ShapeSig, Traits, define_op
from opdock.ops.support.data import ELEMENTS, dataset_op, element_shapes, gives_elements, working_op
from opdock.shapes import Shape

__all__: list[str] = []

parse_example_dataset_op = dataset_op(
    "ParseExampleDataset",
    "input_dataset: variant, num_parallel_calls: int64, dense_defaults: Tdense",
    "sparse_keys: list(string) >= 0, dense_keys: list(string) >= 0, "
    "sparse_types: list({float,int64,string}) >= 0, Tdense: list({float,int64,string}) >= 0, "
    f"dense_shapes: list(shape) >= 0, {ELEMENTS}, sloppy: bool = false",
)

_IN = "input_dataset: variant"
_CAPTURED = f"{_IN}, other_arguments: Targuments"
_F = f"f: func, Targuments: list(type) >= 0, {ELEMENTS}"
_PREDICATE = f"predicate: func, Targuments: list(type) >= 0, {ELEMENTS}"
_KEEPS = "preserve_cardinality: bool = false"
_THREADS = "use_inter_op_parallelism: bool = true"

map_dataset_op = dataset_op("MapDataset", _CAPTURED, f"{_F}, {_THREADS}, {_KEEPS}")
parallel_map_dataset_op = dataset_op(
    "ParallelMapDataset", f"{_CAPTURED}, num_parallel_calls: int32",
    f"{_F}, {_THREADS}, sloppy: bool = false, {_KEEPS}",
)  # fmt: skip
map_and_batch_dataset_op = dataset_op(
    "MapAndBatchDataset",
    f"{_CAPTURED}, batch_size: int64, num_parallel_calls: int64, drop_remainder: bool",
    f"{_F}, {_KEEPS}",
)
flat_map_dataset_op = dataset_op("FlatMapDataset", _CAPTURED, _F)
interleave_dataset_op = dataset_op(
    "InterleaveDataset", f"{_CAPTURED}, cycle_length: int64, block_length: int64", _F
)
parallel_interleave_dataset_op = dataset_op(
    "ParallelInterleaveDataset",
    f"{_CAPTURED}, cycle_length: int64, block_length: int64, sloppy: bool, "
    "buffer_output_elements: int64, prefetch_input_elements: int64",
    _F,
)
parallel_interleave_dataset_v2_op = dataset_op(
    "ParallelInterleaveDatasetV2",
    f"{_CAPTURED}, cycle_length: int64, block_length: int64, num_parallel_calls: int64",
    f"{_F}, sloppy: bool = false",
)
filter_dataset_op = dataset_op("FilterDataset", _CAPTURED, _PREDICATE)
take_while_dataset_op = dataset_op("TakeWhileDataset", _CAPTURED, _PREDICATE)
scan_dataset_op = dataset_op(
    "ScanDataset", f"{_IN}, initial_state: Tstate, other_arguments: Targuments",
    f"f: func, Tstate: list(type) >= 1, Targuments: list(type) >= 0, {ELEMENTS}, {_KEEPS}",
)  # fmt: skip
group_by_reducer_dataset_op = dataset_op(
    "GroupByReducerDataset",
    f"{_IN}, key_func_other_arguments: Tkey_func_other_arguments, "
    "init_func_other_arguments: Tinit_func_other_arguments, "
    "reduce_func_other_arguments: Treduce_func_other_arguments, "
    "finalize_func_other_arguments: Tfinalize_func_other_arguments",
    "key_func: func, init_func: func, reduce_func: func, finalize_func: func, "
    "Tkey_func_other_arguments: list(type) >= 0, Tinit_func_other_arguments: list(type) >= 0, "
    "Treduce_func_other_arguments: list(type) >= 0, "
    f"Tfinalize_func_other_arguments: list(type) >= 0, {ELEMENTS}",
    source=True,
)
group_by_window_dataset_op = dataset_op(
    "GroupByWindowDataset",
    f"{_IN}, key_func_other_arguments: Tkey_func_other_arguments, "
    "reduce_func_other_arguments: Treduce_func_other_arguments, "
    "window_size_func_other_arguments: Twindow_size_func_other_arguments",
    "key_func: func, reduce_func: func, window_size_func: func, "
    "Tkey_func_other_arguments: list(type) >= 0, Treduce_func_other_arguments: list(type) >= 0, "
    f"Twindow_size_func_other_arguments: list(type) >= 0, {ELEMENTS}",
)
choose_fastest_branch_dataset_op = dataset_op(
    "ChooseFastestBranchDataset",
    f"{_IN}, ratio_numerator: int64, ratio_denominator: int64, other_arguments: Targuments",
    "Targuments: list(type) >= 0, num_elements_per_branch: int >= 1, branches: list(func) >= 1, "
    f"other_arguments_lengths: list(int) >= 1, {ELEMENTS}",
)
map_defun_op = define_op(
    "MapDefun", "arguments: Targuments, captured_inputs: Tcaptured -> output: output_types",
    f"Targuments: list(type) >= 1, Tcaptured: list(type) >= 0 = [], {ELEMENTS}, f: func, "
    "max_intra_op_parallelism: int = 1",
).not_differentiable()  # fmt: skip
map_defun_op.declare(
    Traits(
        foreign=True, effect=False, fold=False, merge=False, captures=(("captured_inputs", "f"),)
    )
)  # fmt: skip


@map_defun_op.shape
def _map_defun_shape(sig: ShapeSig) -> list[Shape]:
    count: int | None = None
    for i, shape in enumerate(sig.shapes[: len(sig.attrs["Targuments"])]):
        if shape == ():
            raise ValueError(f"Arguments must have rank at least 1. Input {i} has rank of 0.")
        rows = None if shape is None else shape[0]
        if None not in (count, rows) and count != rows:
            raise ValueError("Arguments must have the same dimension 0.")
        count = rows if count is None else count
    return [None if s is None else (count, *s) for s in element_shapes(sig)]


reduce_dataset_op = working_op(
    "ReduceDataset",
    f"{_IN}, initial_state: Tstate, other_arguments: Targuments -> components: output_types",
    f"f: func, Tstate: list(type) >= 1, Targuments: list(type) >= 0, {ELEMENTS}, {_THREADS}",
)
gives_elements(reduce_dataset_op)
