"""`tf.contrib.image`: images turned, warped, recoloured, and taken apart into regions."""

from __future__ import annotations

from opdock.contrib.image.colors import adjust_hsv_in_yiq, random_hsv_in_yiq
from opdock.contrib.image.regions import bipartite_match, connected_components
from opdock.contrib.image.splines import interpolate_spline
from opdock.contrib.image.transforms import (
    angles_to_projective_transforms,
    compose_transforms,
    flat_transforms_to_matrices,
    matrices_to_flat_transforms,
    rotate,
    transform,
    translate,
    translations_to_projective_transforms,
)
from opdock.contrib.image.warps import dense_image_warp, sparse_image_warp

__all__ = [
    "adjust_hsv_in_yiq",
    "angles_to_projective_transforms",
    "bipartite_match",
    "compose_transforms",
    "connected_components",
    "dense_image_warp",
    "flat_transforms_to_matrices",
    "interpolate_spline",
    "matrices_to_flat_transforms",
    "random_hsv_in_yiq",
    "rotate",
    "sparse_image_warp",
    "transform",
    "translate",
    "translations_to_projective_transforms",
]
