"""Boxes in images: choosing among overlapping ones, drawing them, sampling one at random.

A box is ymin, xmin, ymax, xmax; where a function does not say otherwise, 1 is the image's edge.
"""

from __future__ import annotations

from typing import Any

from opdock import dtypes, shapes
from opdock.docstrings import explained
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.dispatch import extensible
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.scopes import name_scope
from opdock.ops.registry import ShapeSig, Traits, define_op
from opdock.ops.support import array_util
from opdock.shapes import Shape

# Public as tf.image.*, which `api/image.py` gathers.
__all__: list[str] = []

_T = "T: {half, float} = DT_FLOAT"
_DRAWN = "T: {float, half} = DT_FLOAT"
_THRESHOLDS = _T + ", T_threshold: {half, float} = DT_FLOAT"
_PADDED = "pad_to_max_output_size: bool = false"
_BOXES = "boxes: T, scores: T, max_output_size: int32"

non_max_suppression_op = define_op(
    "NonMaxSuppression",
    "boxes: float, scores: float, max_output_size: int32 -> selected_indices: int32",
    "iou_threshold: float = 0.5",
).not_differentiable()
non_max_suppression_v2_op = define_op(
    "NonMaxSuppressionV2", f"{_BOXES}, iou_threshold: T_threshold -> selected_indices: int32",
    _THRESHOLDS,
).not_differentiable()  # fmt: skip
non_max_suppression_v3_op = define_op(
    "NonMaxSuppressionV3",
    f"{_BOXES}, iou_threshold: T_threshold, score_threshold: T_threshold -> "
    "selected_indices: int32",
    _THRESHOLDS,
).not_differentiable()
non_max_suppression_v4_op = define_op(
    "NonMaxSuppressionV4",
    f"{_BOXES}, iou_threshold: T_threshold, score_threshold: T_threshold -> "
    "selected_indices: int32, valid_outputs: int32",
    f"{_THRESHOLDS}, {_PADDED}",
).not_differentiable()
non_max_suppression_v5_op = define_op(
    "NonMaxSuppressionV5",
    f"{_BOXES}, iou_threshold: T, score_threshold: T, soft_nms_sigma: T -> "
    "selected_indices: int32, selected_scores: T, valid_outputs: int32",
    f"{_T}, {_PADDED}",
)
non_max_suppression_with_overlaps_op = define_op(
    "NonMaxSuppressionWithOverlaps",
    "overlaps: float, scores: float, max_output_size: int32, overlap_threshold: float, "
    "score_threshold: float -> selected_indices: int32",
).not_differentiable()
combined_non_max_suppression_op = define_op(
    "CombinedNonMaxSuppression",
    "boxes: float, scores: float, max_output_size_per_class: int32, max_total_size: int32, "
    "iou_threshold: float, score_threshold: float -> nmsed_boxes: float, nmsed_scores: float, "
    "nmsed_classes: float, valid_detections: int32",
    "pad_per_class: bool = false, clip_boxes: bool = true",
)
draw_bounding_boxes_op = define_op(
    "DrawBoundingBoxes", "images: T, boxes: float -> output: T", _DRAWN
).not_differentiable()
draw_bounding_boxes_v2_op = define_op(
    "DrawBoundingBoxesV2", "images: T, boxes: float, colors: float -> output: T", _DRAWN
)
for _op in (
    non_max_suppression_v5_op,
    combined_non_max_suppression_op,
    draw_bounding_boxes_v2_op,
):
    array_util.no_gradient(_op)

_SAMPLED = (
    "aspect_ratio_range: list(float) = [0.75, 1.33], area_range: list(float) = [0.05, 1.0], "
    "max_attempts: int = 100, use_image_if_no_bounding_boxes: bool = false"
)
_SIZES = "T: {uint8, int8, int16, int32, int64}, seed: int = 0, seed2: int = 0, "
sample_distorted_bounding_box_op = define_op(
    "SampleDistortedBoundingBox",
    "image_size: T, bounding_boxes: float -> begin: T, size: T, bboxes: float",
    f"{_SIZES}min_object_covered: float = 0.1, {_SAMPLED}", stateful=True,
).not_differentiable()  # fmt: skip
sample_distorted_bounding_box_v2_op = define_op(
    "SampleDistortedBoundingBoxV2",
    "image_size: T, bounding_boxes: float, min_object_covered: float -> "
    "begin: T, size: T, bboxes: float",
    _SIZES + _SAMPLED, stateful=True,
).not_differentiable()  # fmt: skip
for _op in (sample_distorted_bounding_box_op, sample_distorted_bounding_box_v2_op):
    _op.declare(Traits(random=True))


# ---------------------------------------------------------------- shapes
@non_max_suppression_op.shape
@non_max_suppression_v2_op.shape
@non_max_suppression_v3_op.shape
@non_max_suppression_v4_op.shape
@non_max_suppression_v5_op.shape
@non_max_suppression_with_overlaps_op.shape
def _suppressed_shape(sig: ShapeSig) -> list[Shape]:
    boxes, scores = shapes.with_rank(sig.shapes[0], 2), shapes.with_rank(sig.shapes[1], 1)
    for scalar in sig.shapes[2:]:
        shapes.with_rank(scalar, 0)
    shapes.merge_dim(boxes[0], scores[0])
    if sig.op == "NonMaxSuppressionWithOverlaps":
        shapes.merge_dim(boxes[0], boxes[1])
    else:
        array_util.with_dim(boxes[1], 4)
    count = _given(sig, 2) if sig.attrs.get("pad_to_max_output_size") else None
    vectors = {"NonMaxSuppressionV5": 2}.get(sig.op, 1)
    return [(count,)] * vectors + [()] * (sig.n_outputs - vectors)


def _given(sig: ShapeSig, index: int) -> int | None:
    """A dimension in a scalar input."""
    value = array_util.const_int(sig, index)
    if value is not None and value < 0:
        raise ValueError(
            f"Dimension size, given by scalar input {index}, must be non-negative but is {value}"
        )
    return value


@combined_non_max_suppression_op.shape
def _combined_shape(sig: ShapeSig) -> list[Shape]:
    boxes, scores = shapes.with_rank(sig.shapes[0], 4), shapes.with_rank(sig.shapes[1], 3)
    for scalar in sig.shapes[2:]:
        shapes.with_rank(scalar, 0)
    batch = shapes.merge_dim(boxes[0], scores[0])
    shapes.merge_dim(boxes[1], scores[1])
    array_util.with_dim(boxes[3], 4)
    classes = scores[2]
    if boxes[2] is not None and classes is not None and boxes[2] not in (1, classes):
        raise ValueError(
            "third dimension of boxes must be either 1 or equal to the third dimension of scores"
        )
    total, each = _given(sig, 3), _given(sig, 2)
    if total is not None and total <= 0:
        raise ValueError("max_total_size should be > 0 ")
    if sig.attrs["pad_per_class"]:
        if each is not None and each <= 0:
            raise ValueError(
                "max_output_size_per_class must be > 0 if pad_per_class is set to true "
            )
        by_class = array_util.multiply(each, classes)
        total = None if total is None or by_class is None else min(total, by_class)
    return [(batch, total, 4), (batch, total), (batch, total), (batch,)]


@draw_bounding_boxes_op.shape
def _draw_bounding_boxes_shape(sig: ShapeSig) -> Shape:
    images, boxes = shapes.with_rank(sig.shapes[0], 4), shapes.with_rank(sig.shapes[1], 3)
    if images[3] not in (None, 1, 3, 4):
        raise ValueError("Channel depth should be either 1 (GRY), 3 (RGB), or 4 (RGBA)")
    array_util.with_dim(boxes[2], 4)
    return sig.shapes[0]


@draw_bounding_boxes_v2_op.shape
def _draw_bounding_boxes_v2_shape(sig: ShapeSig) -> Shape:
    return shapes.with_rank_at_least(sig.shapes[0], 3)


@sample_distorted_bounding_box_op.shape
@sample_distorted_bounding_box_v2_op.shape
def _sampled_shape(sig: ShapeSig) -> list[Shape]:
    size, boxes = shapes.with_rank(sig.shapes[0], 1), shapes.with_rank(sig.shapes[1], 3)
    for scalar in sig.shapes[2:]:
        shapes.with_rank(scalar, 0)
    array_util.with_dim(size[0], 3)
    array_util.with_dim(boxes[2], 4)
    return [(3,), (3,), (1, 1, 4)]


# ---------------------------------------------------------------- public functions
_WORDS = {
    "boxes": "float [n, 4]: two opposite corners of each box, y before x, in any unit.",
    "overlaps": "float [n, n]: how much each box overlaps each other.",
    "scores": "float [n]: the score of each box.",
    "max_output_size": "int32: how many boxes to choose at most.",
    "iou_threshold": "boxes that overlap a better one by more, intersection over union, go.",
    "overlap_threshold": "boxes that overlap a better one by more go.",
    "score_threshold": "boxes whose score is not above it go.",
    "soft_nms_sigma": "above 0, overlaps lower scores by a Gaussian of this width.",
    "pad_to_max_output_size": "whether there are always `max_output_size` indices; zeros follow.",
    "name": "a name for the operation.",
    "returns": "int32 indices of the chosen boxes, the best first.",
    "raises": "InvalidArgumentError: when run, for a threshold outside [0, 1].",
}
"""What the functions here take."""
_LOWEST = float("-inf")


def _number(value: Any, name: str, dtype: Any = None) -> Tensor:
    return convert_to_tensor(value, dtype, name)


@extensible
@explained(_WORDS)
def non_max_suppression(
    boxes: Any, scores: Any, max_output_size: Any, iou_threshold: Any = 0.5,
    score_threshold: Any = _LOWEST, name: str | None = None,
) -> Tensor:  # fmt: skip
    """Chooses boxes by score, and drops those that overlap one chosen before."""
    with name_scope(name, "non_max_suppression"):
        overlap = _number(iou_threshold, "iou_threshold")
        least = _number(score_threshold, "score_threshold")
        return non_max_suppression_v3_op(boxes, scores, max_output_size, overlap, least)  # type: ignore[no-any-return]


@extensible
@explained(_WORDS, returns="Indices as `non_max_suppression` gives them, and their scores.")
def non_max_suppression_with_scores(
    boxes: Any, scores: Any, max_output_size: Any, iou_threshold: Any = 0.5,
    score_threshold: Any = _LOWEST, soft_nms_sigma: Any = 0.0, name: str | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """`non_max_suppression` with scores that overlaps lower (https://arxiv.org/abs/1704.04503)."""
    with name_scope(name, "non_max_suppression_with_scores"):
        found, lowered, _ = non_max_suppression_v5_op(
            boxes,
            scores,
            max_output_size,
            _number(iou_threshold, "iou_threshold"),
            _number(score_threshold, "score_threshold"),
            _number(soft_nms_sigma, "soft_nms_sigma"),
            pad_to_max_output_size=False,
        )
        return found, lowered


@extensible
@explained(_WORDS, returns="Indices as `non_max_suppression` gives them, and how many count.")
def non_max_suppression_padded(
    boxes: Any, scores: Any, max_output_size: Any, iou_threshold: Any = 0.5,
    score_threshold: Any = _LOWEST, pad_to_max_output_size: bool = False, name: str | None = None,
) -> Any:  # fmt: skip
    """`non_max_suppression` with a result whose shape does not depend on the boxes."""
    with name_scope(name, "non_max_suppression_padded"):
        return non_max_suppression_v4_op(
            boxes,
            scores,
            max_output_size,
            _number(iou_threshold, "iou_threshold"),
            _number(score_threshold, "score_threshold"),
            pad_to_max_output_size=pad_to_max_output_size,
        )


@extensible
@explained(_WORDS, raises="")
def non_max_suppression_overlaps(
    overlaps: Any, scores: Any, max_output_size: Any, overlap_threshold: Any = 0.5,
    score_threshold: Any = _LOWEST, name: str | None = None,
) -> Tensor:  # fmt: skip
    """`non_max_suppression` with overlaps of the caller's."""
    with name_scope(name, "non_max_suppression_overlaps"):
        overlap = _number(overlap_threshold, "overlap_threshold")
        return non_max_suppression_with_overlaps_op(  # type: ignore[no-any-return]
            overlaps, scores, max_output_size, overlap, score_threshold
        )


@extensible
@explained(
    _WORDS,
    boxes="float32 [batch, n, q, 4]; q is 1 or the number of classes.",
    scores="float32 [batch, n, classes].",
    max_output_size_per_class="int32: how many boxes of each class to choose at most.",
    max_total_size="int32: how many boxes of all classes to choose at most.",
    pad_per_class="whether results have at most `max_output_size_per_class * classes` entries.",
    clip_boxes="whether to clip chosen boxes to [0, 1].",
    returns="(boxes [batch, size, 4], scores [batch, size], classes [batch, size], how many of "
    "them count [batch]); zeros follow.",
)
def combined_non_max_suppression(
    boxes: Any, scores: Any, max_output_size_per_class: Any, max_total_size: Any,
    iou_threshold: Any = 0.5, score_threshold: Any = _LOWEST, pad_per_class: bool = False,
    clip_boxes: bool = True, name: str | None = None,
) -> Any:  # fmt: skip
    """`non_max_suppression` for each image of a batch and each class, the best of all classes."""
    with name_scope(name, "combined_non_max_suppression"):
        return combined_non_max_suppression_op(
            boxes,
            scores,
            max_output_size_per_class,
            max_total_size,
            _number(iou_threshold, "iou_threshold", dtypes.float32),
            _number(score_threshold, "score_threshold", dtypes.float32),
            pad_per_class=pad_per_class,
            clip_boxes=clip_boxes,
        )


@extensible
def draw_bounding_boxes(
    images: Any, boxes: Any, name: str | None = None, colors: Any = None
) -> Tensor:
    """Draws boxes on images, one pixel wide.

    Args:
        images: float16 or float32 [batch, height, width, channels] with 1, 3 or 4 channels.
        boxes: float32 [batch, n, 4].
        name: a name for the operation.
        colors: float32 [m, channels], taken in turn; ten that TF chose by default.

    Returns:
        A tensor of the shape and type of `images`.
    """
    if colors is None:
        return draw_bounding_boxes_op(images, boxes, name=name)  # type: ignore[no-any-return]
    return draw_bounding_boxes_v2_op(images, boxes, colors, name=name)  # type: ignore[no-any-return]


@extensible
def sample_distorted_bounding_box(
    image_size: Any, bounding_boxes: Any, seed: int | None = None, seed2: int | None = None,
    min_object_covered: Any = 0.1, aspect_ratio_range: Any = None, area_range: Any = None,
    max_attempts: int | None = None, use_image_if_no_bounding_boxes: bool | None = None,
    name: str | None = None,
) -> Any:  # fmt: skip
    """A random part of an image that holds enough of an object in it.

    Args:
        image_size: integers [3]: height, width, channels.
        bounding_boxes: float32 [batch, n, 4], the objects.
        seed, seed2: seeds; without them each session draws others.
        min_object_covered: how much of one object must be in the part.
        aspect_ratio_range: the smallest and largest width by height, [0.75, 1.33] by default.
        area_range: the smallest and largest part of the area, [0.05, 1] by default.
        max_attempts: how many parts to try before the whole image is taken, 100 by default.
        use_image_if_no_bounding_boxes: whether the image is the object when there are no boxes.
        name: a name for the operation.

    Returns:
        `(begin, size, bboxes)`: two arguments of `tf.slice` in the type of `image_size`, and the
        part as a box, [1, 1, 4].

    Raises:
        InvalidArgumentError: when run, without boxes, or for ranges that nothing fits.
    """
    given = {
        "seed": seed,
        "seed2": seed2,
        "aspect_ratio_range": aspect_ratio_range,
        "area_range": area_range,
        "max_attempts": max_attempts,
        "use_image_if_no_bounding_boxes": use_image_if_no_bounding_boxes,
    }
    attrs = {key: value for key, value in given.items() if value is not None}
    with name_scope(name, "sample_distorted_bounding_box"):
        return sample_distorted_bounding_box_v2_op(
            image_size, bounding_boxes, min_object_covered, **attrs, name=name
        )
