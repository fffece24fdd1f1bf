"""What a backend that compiles its own kernels takes from core: `opdock.plugin.codegen`.

The renderer of scalar expressions, the lines of ops, and the argument checks of the portable
kernels, so that a backend's own kernels raise the same errors.
"""

from __future__ import annotations

from opdock.kernels.array_api import dims, ints, invalid
from opdock.kernels.expr import parse
from opdock.kernels.lowering import Line, lower
from opdock.kernels.portable.array import wanted_shape
from opdock.kernels.portable.gather import axes_of
from opdock.kernels.portable.joining import check_alike, checked_axis
from opdock.kernels.portable.linalg import check_batch_matmul, check_matmul
from opdock.kernels.portable.padding import margins
from opdock.kernels.portable.reduce import arg_axis, reduced_axes
from opdock.kernels.portable.slicing import block, subscript
from opdock.kernels.render_c import (
    ERRORS,
    RENDERED,
    Dialect,
    Rendered,
    can_render,
    elementwise_source,
    helpers,
    render,
)
from opdock.kernels.render_c_ops import (
    elementwise_claims,
    input_names,
    node_line,
    update_line,
    update_of,
    updates,
)

__all__ = [
    "ERRORS", "RENDERED", "Dialect", "Line", "Rendered", "arg_axis", "axes_of", "block",
    "can_render", "check_alike", "check_batch_matmul", "check_matmul", "checked_axis", "dims",
    "elementwise_claims", "elementwise_source", "helpers", "input_names", "ints", "invalid",
    "lower", "margins", "node_line", "parse", "reduced_axes", "render", "subscript",
    "update_line", "update_of", "updates", "wanted_shape",
]  # fmt: skip
