"""Patches of images and volumes, laid out in the depth dimension."""

from __future__ import annotations

import math
from typing import Any

from opdock import dtypes, errors, shapes
from opdock.docstrings import explained
from opdock.graph.nodes.dispatch import extensible
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.ops.array import reshape, shape
from opdock.ops.cast import cast
from opdock.ops.registry import ShapeSig, define_op
from opdock.ops.support import array_util
from opdock.ops.support.windows import check_length
from opdock.shapes import Shape
from opdock.windows import Layout

__all__ = ["extract_image_patches", "extract_volume_patches"]

extract_image_patches_op = define_op(
    "ExtractImagePatches", "images: T -> patches: T",
    "ksizes: list(int) >= 4, strides: list(int) >= 4, rates: list(int) >= 4, "
    "T: realnumbertype, padding: {'SAME', 'VALID'}",
)  # fmt: skip
extract_volume_patches_op = define_op(
    "ExtractVolumePatches", "input: T -> patches: T",
    "ksizes: list(int) >= 5, strides: list(int) >= 5, T: realnumbertype, "
    "padding: {'SAME', 'VALID'}",
)  # fmt: skip


# ---------------------------------------------------------------- shapes
def _patches_shape(sig: ShapeSig, rank: int) -> Shape:
    source = shapes.with_rank(sig.shapes[0], rank)
    for name in ("ksizes", "strides", "rates"):
        if name in sig.attrs:
            check_length(sig.attrs[name], rank, f"{sig.op} requires the {name}")
            if sig.attrs[name][0] != 1 or sig.attrs[name][-1] != 1:
                text = f"Only support {name} across space."
                raise errors.UnimplementedError(None, None, text)
    sizes = sig.attrs["ksizes"][1:-1]
    space = Layout(sig.attrs).output(source[1:-1], sizes, empty=True)
    return (source[0], *space, array_util.multiply(source[-1], math.prod(sizes)))


@extract_image_patches_op.shape
def _extract_image_patches_shape(sig: ShapeSig) -> Shape:
    return _patches_shape(sig, 4)


@extract_volume_patches_op.shape
def _extract_volume_patches_shape(sig: ShapeSig) -> Shape:
    return _patches_shape(sig, 5)


# ---------------------------------------------------------------- gradients
def _patches_grad(op: Operation, grad: Any, extract: Any) -> Tensor:
    """Sums each patch element onto the element that it came from.

    The same extraction of the numbers 1 ... n says where each came from; 0 is the padding.
    """
    from opdock.ops.fill import range
    from opdock.ops.joining import concat, stack
    from opdock.ops.matrix import transpose
    from opdock.ops.reduce import reduce_prod
    from opdock.ops.unsorted_segment import unsorted_segment_sum

    full = shape(op.inputs[0])
    space, batch, depth = full[1:-1], full[0], full[-1]
    count = reduce_prod(space)
    numbers = reshape(range(1, count + 1), concat([[1], space, [1]], 0))
    origin = reshape(cast(extract(cast(numbers, dtypes.int64)), dtypes.int32), [-1])
    # Rows are (window, offset) pairs, as in `origin`; columns (batch, channel).
    n = shape(origin)[0]
    rows = transpose(reshape(grad, stack([batch, n, depth])), [1, 0, 2])
    rows = reshape(rows, stack([n, batch * depth]))
    summed = unsorted_segment_sum(rows, origin, count + 1)[1:]
    out = transpose(reshape(summed, stack([count, batch, depth])), [1, 0, 2])
    out = reshape(out, full)
    out.set_shape(op.inputs[0].raw_shape)
    return out


@extract_image_patches_op.gradient
def _extract_image_patches_grad(op: Operation, grad: Any) -> Tensor:
    attrs = {k: op.attrs[k] for k in ("ksizes", "strides", "rates", "padding")}
    return _patches_grad(op, grad, lambda x: extract_image_patches_op(x, **attrs))


@extract_volume_patches_op.gradient
def _extract_volume_patches_grad(op: Operation, grad: Any) -> Tensor:
    attrs = {k: op.attrs[k] for k in ("ksizes", "strides", "padding")}
    return _patches_grad(op, grad, lambda x: extract_volume_patches_op(x, **attrs))


# ---------------------------------------------------------------- public functions
_WORDS = {
    "images": "a tensor of shape [batch, height, width, depth].",
    "strides": "the distance between windows, [1, rows, cols, 1].",
    "rates": "the distance between the elements of a window, [1, rows, cols, 1].",
    "padding": '"VALID" or "SAME".',
    "name": "a name for the operation.",
    "returns": "A tensor of shape [batch, out rows, out cols, rows * cols * depth].",
}
"""What the functions here take."""


@extensible
@explained(_WORDS, ksizes="the window, [1, rows, cols, 1].", sizes="another name of `ksizes`.")
def extract_image_patches(
    images: Any,
    ksizes: Any = None,
    strides: Any = None,
    rates: Any = None,
    padding: str | None = None,
    name: str | None = None,
    sizes: Any = None,
) -> Tensor:
    """The patches under a sliding window, in the depth of the result."""
    ksizes = array_util.renamed("sizes", sizes, "ksizes", ksizes)
    return extract_image_patches_op(  # type: ignore[no-any-return]
        images, ksizes=ksizes, strides=strides, rates=rates, padding=padding, name=name
    )


@extensible
@explained(_WORDS, sizes="the window, [1, rows, cols, 1].")
def extract_patches(
    images: Any, sizes: Any, strides: Any, rates: Any, padding: str, name: str | None = None
) -> Tensor:
    """The patches under a sliding window (`tf.image.extract_patches`)."""
    return extract_image_patches(images, sizes, strides, rates, padding, name)


@extensible
@explained(
    _WORDS,
    input="a tensor of shape [batch, planes, rows, cols, depth].",
    ksizes="the window, [1, planes, rows, cols, 1].",
    strides="the distance between windows, [1, planes, rows, cols, 1].",
    returns="A tensor of shape [batch, out planes, out rows, out cols, window size * depth].",
)
def extract_volume_patches(
    input: Any, ksizes: Any, strides: Any, padding: str, name: str | None = None
) -> Tensor:
    """The patches under a window that slides through volumes, in the depth of the result."""
    return extract_volume_patches_op(  # type: ignore[no-any-return]
        input, ksizes=ksizes, strides=strides, padding=padding, name=name
    )
