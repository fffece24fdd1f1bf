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
    from opdock.kernels.portable.array import broadcast_shape, check_shape, wanted_shape
    from opdock.kernels.portable.audio import check_sample_rate
    from opdock.kernels.portable.cast import bitcast_shape
    from opdock.kernels.portable.compare import check_choice
    from opdock.kernels.portable.ctc import check_ctc_lengths
    from opdock.kernels.portable.decompositions import check_square
    from opdock.kernels.portable.diag import check_set_diag
    from opdock.kernels.portable.fill import filled_shape
    from opdock.kernels.portable.fill import steps as range_steps
    from opdock.kernels.portable.fractional_pool import drawn_windows
    from opdock.kernels.portable.gather import axes_of, check_params, not_in, outside
    from opdock.kernels.portable.histogram import bins_of
    from opdock.kernels.portable.image_boxes import check_drawing, usual_colors
    from opdock.kernels.portable.image_crop import check_glimpses, glimpse_noise
    from opdock.kernels.portable.inplace import check_changed
    from opdock.kernels.portable.joining import check_alike
    from opdock.kernels.portable.linalg import check_batch_matmul, check_matmul
    from opdock.kernels.portable.matrix import band_of
    from opdock.kernels.portable.norm import check_channels
    from opdock.kernels.portable.padding import check_mirror, margins
    from opdock.kernels.portable.partition import check_labelled, check_parts
    from opdock.kernels.portable.ragged import check_splits
    from opdock.kernels.portable.scatter import check_updates
    from opdock.kernels.portable.segment import check_segments, out_of_segments, unsorted_error
    from opdock.kernels.portable.select import one_hot_axis
    from opdock.kernels.portable.sets import no_permutation
    from opdock.kernels.portable.slicing import subscript
    from opdock.kernels.portable.solve import check_solve
    from opdock.kernels.portable.sorting import check_k
    from opdock.kernels.portable.spacebatch import check_blocks, check_multiple
    from opdock.kernels.portable.sparse_layout import dense_places
    from opdock.kernels.portable.splitting import equal_lengths, given_lengths, unpacked_axis
    from opdock.kernels.portable.state import check_assigned, check_rows
    from opdock.kernels.portable.sums import check_addends, check_cross
    from opdock.kernels.portable.tiling import check_sequences, multiples_of
    from opdock.kernels.portable.xent import check_classes, no_class
    from opdock.kernels.suppression import (
        boxes_wanted,
        boxes_wanted_by_overlaps,
        boxes_wanted_of_classes,
    )

__all__ = [
    "axes_of",
    "band_of",
    "bins_of",
    "bitcast_shape",
    "boxes_wanted",
    "boxes_wanted_by_overlaps",
    "boxes_wanted_of_classes",
    "broadcast_shape",
    "check_addends",
    "check_alike",
    "check_assigned",
    "check_batch_matmul",
    "check_blocks",
    "check_changed",
    "check_channels",
    "check_choice",
    "check_classes",
    "check_cross",
    "check_ctc_lengths",
    "check_drawing",
    "check_glimpses",
    "check_k",
    "check_labelled",
    "check_matmul",
    "check_mirror",
    "check_multiple",
    "check_params",
    "check_parts",
    "check_rows",
    "check_sample_rate",
    "check_segments",
    "check_sequences",
    "check_set_diag",
    "check_shape",
    "check_solve",
    "check_splits",
    "check_square",
    "check_updates",
    "dense_places",
    "diagonals",
    "dims",
    "drawn_windows",
    "equal_lengths",
    "filled_shape",
    "given_lengths",
    "glimpse_noise",
    "ints",
    "invalid",
    "margins",
    "multiples_of",
    "no_class",
    "no_permutation",
    "not_in",
    "one_hot_axis",
    "out_of_segments",
    "outside",
    "range_steps",
    "subscript",
    "unpacked_axis",
    "unsorted_error",
    "usual_colors",
    "wanted_shape",
]  # fmt: skip

_WHERE: Final = {
    "array": "broadcast_shape check_shape wanted_shape",
    "audio": "check_sample_rate",
    "cast": "bitcast_shape",
    "compare": "check_choice",
    "ctc": "check_ctc_lengths",
    "decompositions": "check_square",
    "diag": "check_set_diag",
    "fill": "filled_shape steps",
    "fractional_pool": "drawn_windows",
    "gather": "axes_of check_params not_in outside",
    "histogram": "bins_of",
    "image_boxes": (
        "boxes_wanted boxes_wanted_by_overlaps boxes_wanted_of_classes check_drawing usual_colors"
    ),
    "image_crop": "check_glimpses glimpse_noise",
    "inplace": "check_changed",
    "joining": "check_alike",
    "linalg": "check_batch_matmul check_matmul",
    "matrix": "band_of",
    "norm": "check_channels",
    "padding": "check_mirror margins",
    "partition": "check_labelled check_parts",
    "ragged": "check_splits",
    "scatter": "check_updates",
    "segment": "check_segments out_of_segments unsorted_error",
    "select": "one_hot_axis",
    "sets": "no_permutation",
    "slicing": "subscript",
    "solve": "check_solve",
    "sorting": "check_k",
    "spacebatch": "check_blocks check_multiple",
    "sparse_layout": "dense_places",
    "splitting": "equal_lengths given_lengths unpacked_axis",
    "state": "check_assigned check_rows",
    "sums": "check_addends check_cross",
    "tiling": "check_sequences multiples_of",
    "xent": "check_classes no_class",
}
_NAMES: Final = {name: module for module, names in _WHERE.items() for name in names.split()}
_OTHERWISE: Final = {"range_steps": "steps"}
"""What a check is called here -> what it is called where it stands."""


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    inner = _OTHERWISE.get(name, name)
    value = getattr(import_module(f"opdock.kernels.portable.{_NAMES[inner]}"), inner)
    globals()[name] = value
    return value
