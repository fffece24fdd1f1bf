"""What a backend that compiles its own kernels takes from core; also as `opdock.plugin.codegen`.

The renderer of scalar expressions, the lines of ops, and the argument checks of the portable
kernels, so that a backend's own kernels raise the same errors.
"""

from __future__ import annotations

from opdock.graph.nodes import diagonals
from opdock.kernels.array_api import dims, ints, invalid
from opdock.kernels.expr.cluster import Reduce, evaluate_cluster
from opdock.kernels.expr.lowering import CAST, INPUT, NUMBER, Line, lower
from opdock.kernels.expr.lowering import evaluator as evaluate
from opdock.kernels.expr.render_c import (
    ERRORS,
    RENDERED,
    Dialect,
    Rendered,
    can_render,
    elementwise_source,
    helpers,
    render,
)
from opdock.kernels.expr.render_c_ops import (
    elementwise_claims,
    input_names,
    node_line,
    update_line,
    update_of,
    updates,
)
from opdock.kernels.expr.tree import parse
from opdock.kernels.portable import family as portable_family
from opdock.kernels.portable.array import check_shape, wanted_shape
from opdock.kernels.portable.decompositions import check_square
from opdock.kernels.portable.fill import steps as range_steps
from opdock.kernels.portable.gather import axes_of, check_params, outside
from opdock.kernels.portable.joining import check_alike
from opdock.kernels.portable.linalg import check_batch_matmul, check_matmul
from opdock.kernels.portable.padding import check_mirror, margins
from opdock.kernels.portable.segment import unsorted_error
from opdock.kernels.portable.slicing import subscript
from opdock.kernels.portable.solve import check_solve
from opdock.kernels.portable.sorting import check_k
from opdock.kernels.portable.spacebatch import check_blocks, check_multiple
from opdock.kernels.portable.special import SERIES
from opdock.kernels.portable.training import update_on

__all__ = [
    "CAST", "ERRORS", "INPUT", "NUMBER", "RENDERED", "SERIES", "Dialect", "Line", "Reduce",
    "Rendered", "axes_of", "can_render", "check_alike",
    "check_batch_matmul", "check_blocks", "check_k", "check_matmul", "check_mirror",
    "check_multiple", "check_params", "check_shape", "check_solve", "check_square",
    "diagonals", "dims", "elementwise_claims", "elementwise_source", "evaluate",
    "evaluate_cluster", "helpers", "input_names", "ints", "invalid", "lower", "margins",
    "node_line", "outside", "parse", "portable_family", "range_steps",
    "render", "subscript", "unsorted_error", "update_line",
    "update_of", "update_on", "updates", "wanted_shape",
]  # fmt: skip
