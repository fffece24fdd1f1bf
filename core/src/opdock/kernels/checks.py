"""The argument checks of the portable kernels, for backends' own kernels: `opdock.plugin.checks`.

Each raises the error that TF raises, so the same mistake reads the same on every device. They stand
with the kernels that they are for, which are imported when a check is first asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from opdock.graph.nodes import diagonals
from opdock.kernels.array_api import dims, ints, invalid

if TYPE_CHECKING:
    from opdock.kernels.data.csv import check_columns, check_record_default
    from opdock.kernels.portable.array import (
        broadcast_shape,
        broadcast_shapes,
        check_shape,
        check_vector_of,
        wanted_shape,
    )
    from opdock.kernels.portable.audio import check_sample_rate
    from opdock.kernels.portable.cast import bitcast_shape
    from opdock.kernels.portable.clustering import check_any_points
    from opdock.kernels.portable.compare import check_choice
    from opdock.kernels.portable.ctc import check_ctc_lengths
    from opdock.kernels.portable.decompositions import check_square, matrix_failure
    from opdock.kernels.portable.diag import batch_of_band, check_diagonals, check_set_diag, half_of
    from opdock.kernels.portable.fake_quant import check_range_axis, check_range_size
    from opdock.kernels.portable.fill import filled_shape
    from opdock.kernels.portable.fill import steps as range_steps
    from opdock.kernels.portable.fractional_pool import drawn_windows
    from opdock.kernels.portable.gather import axes_of, check_depth, check_params, not_in, outside
    from opdock.kernels.portable.histogram import bin_count, bins_of, check_counted
    from opdock.kernels.portable.identity import not_finite
    from opdock.kernels.portable.image_boxes import check_drawing, usual_colors
    from opdock.kernels.portable.image_crop import check_glimpses, glimpse_noise
    from opdock.kernels.portable.inplace import check_changed, empty_shape
    from opdock.kernels.portable.joining import check_alike
    from opdock.kernels.portable.linalg import check_batch_matmul, check_matmul
    from opdock.kernels.portable.matrix import band_of, check_matrix
    from opdock.kernels.portable.morphology import check_dilated
    from opdock.kernels.portable.norm import check_channels
    from opdock.kernels.portable.padding import check_mirror, margins
    from opdock.kernels.portable.partition import check_labelled, check_parts, negative_place
    from opdock.kernels.portable.pool import outside_of_input
    from opdock.kernels.portable.ragged import check_splits
    from opdock.kernels.portable.random_stateful import batch_parameter, reserve_draws
    from opdock.kernels.portable.scatter import check_updates, scattered_shape
    from opdock.kernels.portable.segment import (
        check_picked_ids,
        check_segment_ids,
        check_segments,
        no_picked_row,
        no_row,
        no_segment,
        out_of_segments,
        unsorted_error,
    )
    from opdock.kernels.portable.select import one_hot_axis
    from opdock.kernels.portable.sets import check_lists, check_vector, no_permutation, unique_axis
    from opdock.kernels.portable.slicing import check_sliced_grad, check_sliced_value, subscript
    from opdock.kernels.portable.solve import check_solve
    from opdock.kernels.portable.sorting import check_k, check_searched
    from opdock.kernels.portable.spacebatch import (
        check_blocks,
        check_multiple,
        grown_sizes,
        padded_sizes,
    )
    from opdock.kernels.portable.sparse_layout import dense_places
    from opdock.kernels.portable.sparse_math import leading_of_sparse, outside_dense
    from opdock.kernels.portable.splitting import equal_lengths, given_lengths, unpacked_axis
    from opdock.kernels.portable.state import check_assigned, check_rows
    from opdock.kernels.portable.sums import check_addends, check_cross
    from opdock.kernels.portable.tiling import check_sequences, multiples_of
    from opdock.kernels.portable.tridiagonal import check_tridiagonal, no_pivot
    from opdock.kernels.portable.xent import check_classes, no_class
    from opdock.kernels.suppression import (
        boxes_wanted,
        boxes_wanted_by_overlaps,
        boxes_wanted_of_classes,
    )

__all__ = [
    "axes_of",
    "band_of",
    "batch_of_band",
    "batch_parameter",
    "bin_count",
    "bins_of",
    "bitcast_shape",
    "boxes_wanted",
    "boxes_wanted_by_overlaps",
    "boxes_wanted_of_classes",
    "broadcast_shape",
    "broadcast_shapes",
    "check_addends",
    "check_alike",
    "check_any_points",
    "check_assigned",
    "check_batch_matmul",
    "check_blocks",
    "check_changed",
    "check_channels",
    "check_choice",
    "check_classes",
    "check_columns",
    "check_counted",
    "check_cross",
    "check_ctc_lengths",
    "check_depth",
    "check_diagonals",
    "check_dilated",
    "check_drawing",
    "check_glimpses",
    "check_k",
    "check_labelled",
    "check_lists",
    "check_matmul",
    "check_matrix",
    "check_mirror",
    "check_multiple",
    "check_params",
    "check_parts",
    "check_picked_ids",
    "check_range_axis",
    "check_range_size",
    "check_record_default",
    "check_rows",
    "check_sample_rate",
    "check_searched",
    "check_segment_ids",
    "check_segments",
    "check_sequences",
    "check_set_diag",
    "check_shape",
    "check_sliced_grad",
    "check_sliced_value",
    "check_solve",
    "check_splits",
    "check_square",
    "check_tridiagonal",
    "check_updates",
    "check_vector",
    "check_vector_of",
    "dense_places",
    "diagonals",
    "dims",
    "drawn_windows",
    "empty_shape",
    "equal_lengths",
    "filled_shape",
    "given_lengths",
    "glimpse_noise",
    "grown_sizes",
    "half_of",
    "ints",
    "invalid",
    "leading_of_sparse",
    "margins",
    "matrix_failure",
    "multiples_of",
    "negative_place",
    "no_class",
    "no_permutation",
    "no_picked_row",
    "no_pivot",
    "no_row",
    "no_segment",
    "not_finite",
    "not_in",
    "one_hot_axis",
    "out_of_segments",
    "outside",
    "outside_dense",
    "outside_of_input",
    "padded_sizes",
    "range_steps",
    "reserve_draws",
    "scattered_shape",
    "subscript",
    "unique_axis",
    "unpacked_axis",
    "unsorted_error",
    "usual_colors",
    "wanted_shape",
]  # fmt: skip

_WHERE: Final = {
    "array": "broadcast_shape broadcast_shapes check_shape check_vector_of wanted_shape",
    "audio": "check_sample_rate",
    "cast": "bitcast_shape",
    "clustering": "check_any_points",
    "compare": "check_choice",
    "ctc": "check_ctc_lengths",
    "data.csv": "check_columns check_record_default",
    "decompositions": "check_square matrix_failure",
    "diag": "batch_of_band check_diagonals check_set_diag half_of",
    "fake_quant": "check_range_axis check_range_size",
    "fill": "filled_shape steps",
    "fractional_pool": "drawn_windows",
    "gather": "axes_of check_depth check_params not_in outside",
    "histogram": "bin_count bins_of check_counted",
    "identity": "not_finite",
    "image_boxes": (
        "boxes_wanted boxes_wanted_by_overlaps boxes_wanted_of_classes check_drawing usual_colors"
    ),
    "image_crop": "check_glimpses glimpse_noise",
    "inplace": "check_changed empty_shape",
    "joining": "check_alike",
    "linalg": "check_batch_matmul check_matmul",
    "matrix": "band_of check_matrix",
    "morphology": "check_dilated",
    "norm": "check_channels",
    "padding": "check_mirror margins",
    "partition": "check_labelled check_parts negative_place",
    "pool": "outside_of_input",
    "ragged": "check_splits",
    "random_stateful": "batch_parameter reserve_draws",
    "scatter": "check_updates scattered_shape",
    "segment": (
        "check_picked_ids check_segment_ids check_segments no_picked_row no_row no_segment "
        "out_of_segments unsorted_error"
    ),
    "select": "one_hot_axis",
    "sets": "check_lists check_vector no_permutation unique_axis",
    "slicing": "check_sliced_grad check_sliced_value subscript",
    "solve": "check_solve",
    "sorting": "check_k check_searched",
    "spacebatch": "check_blocks check_multiple grown_sizes padded_sizes",
    "sparse_layout": "dense_places",
    "sparse_math": "leading_of_sparse outside_dense",
    "splitting": "equal_lengths given_lengths unpacked_axis",
    "state": "check_assigned check_rows",
    "sums": "check_addends check_cross",
    "tiling": "check_sequences multiples_of",
    "tridiagonal": "check_tridiagonal no_pivot",
    "xent": "check_classes no_class",
}
_NAMES: Final = {name: module for module, names in _WHERE.items() for name in names.split()}
_OTHERWISE: Final = {"range_steps": "steps"}
"""What a check is called here -> what it is called where it stands."""


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    inner = _OTHERWISE.get(name, name)
    module = _NAMES[inner] if "." in _NAMES[inner] else f"portable.{_NAMES[inner]}"
    value = getattr(import_module(f"opdock.kernels.{module}"), inner)
    globals()[name] = value
    return value
