"""`tf.image`: decoding, resizing, cropping and adjusting images, and boxes in them."""

from __future__ import annotations

from opdock.ops.composed.image_adjust import (
    adjust_brightness,
    adjust_contrast,
    adjust_gamma,
    adjust_hue,
    adjust_jpeg_quality,
    adjust_saturation,
    convert_image_dtype,
    per_image_standardization,
    random_brightness,
    random_contrast,
    random_hue,
    random_jpeg_quality,
    random_saturation,
)
from opdock.ops.composed.image_files import decode_image, is_jpeg
from opdock.ops.composed.image_geometry import (
    central_crop,
    crop_to_bounding_box,
    flip_left_right,
    flip_up_down,
    pad_to_bounding_box,
    random_flip_left_right,
    random_flip_up_down,
    resize_image_with_crop_or_pad,
    rot90,
    transpose,
)
from opdock.ops.composed.image_measures import (
    image_gradients,
    psnr,
    sobel_edges,
    ssim,
    ssim_multiscale,
    total_variation,
)
from opdock.ops.composed.image_resizing import ResizeMethod, resize_image_with_pad, resize_images
from opdock.ops.composed.image_spaces import (
    grayscale_to_rgb,
    rgb_to_grayscale,
    rgb_to_yiq,
    rgb_to_yuv,
    yiq_to_rgb,
    yuv_to_rgb,
)
from opdock.ops.image_boxes import (
    combined_non_max_suppression,
    draw_bounding_boxes,
    non_max_suppression,
    non_max_suppression_overlaps,
    non_max_suppression_padded,
    non_max_suppression_with_scores,
    sample_distorted_bounding_box,
)
from opdock.ops.image_codec import (
    decode_and_crop_jpeg,
    decode_bmp,
    decode_gif,
    decode_jpeg,
    decode_png,
    encode_jpeg,
    encode_png,
    extract_jpeg_shape,
)
from opdock.ops.image_color import hsv_to_rgb, rgb_to_hsv
from opdock.ops.image_crop import crop_and_resize, extract_glimpse
from opdock.ops.image_resize import (
    resize_area,
    resize_bicubic,
    resize_bilinear,
    resize_nearest_neighbor,
)
from opdock.ops.patches import extract_image_patches, extract_patches
from opdock.ops.random import random_crop

# What TF 1.15 has under a second name.
resize = resize_images
resize_with_crop_or_pad = resize_image_with_crop_or_pad
transpose_image = transpose

__all__ = [
    "ResizeMethod", "adjust_brightness", "adjust_contrast", "adjust_gamma", "adjust_hue",
    "adjust_jpeg_quality", "adjust_saturation", "central_crop", "combined_non_max_suppression",
    "convert_image_dtype", "crop_and_resize", "crop_to_bounding_box", "decode_and_crop_jpeg",
    "decode_bmp", "decode_gif", "decode_image", "decode_jpeg", "decode_png",
    "draw_bounding_boxes", "encode_jpeg", "encode_png", "extract_glimpse",
    "extract_image_patches", "extract_jpeg_shape", "extract_patches", "flip_left_right",
    "flip_up_down", "grayscale_to_rgb", "hsv_to_rgb", "image_gradients", "is_jpeg",
    "non_max_suppression", "non_max_suppression_overlaps", "non_max_suppression_padded",
    "non_max_suppression_with_scores", "pad_to_bounding_box", "per_image_standardization", "psnr",
    "random_brightness", "random_contrast", "random_crop", "random_flip_left_right",
    "random_flip_up_down", "random_hue", "random_jpeg_quality", "random_saturation", "resize",
    "resize_area", "resize_bicubic", "resize_bilinear", "resize_image_with_crop_or_pad",
    "resize_image_with_pad", "resize_images", "resize_nearest_neighbor",
    "resize_with_crop_or_pad", "rgb_to_grayscale", "rgb_to_hsv", "rgb_to_yiq", "rgb_to_yuv",
    "rot90", "sample_distorted_bounding_box", "sobel_edges", "ssim", "ssim_multiscale",
    "total_variation", "transpose", "transpose_image", "yiq_to_rgb", "yuv_to_rgb",
]  # fmt: skip
