"""Portable kernels of images under the strict standard: the suite's samples against its oracle."""

from __future__ import annotations

import array_api_strict as xp
import numpy as np
import pytest

from opdock.dtypes import as_dtype
from opdock.graph.nodes import registry
from opdock.kernels.portable import mount
from opdock.kernels.select.signature import NodeSig
from opdock.testing.harness.sample import samples_for
from opdock.testing.reference._registry import reference_for, widen

RULES = {"align_corners": False, "half_pixel_centers": False}
SAMPLING = {"kernel_type": "lanczos3", "antialias": True}
CROPS = {"method": "bilinear", "extrapolation_value": 0.0}
GLIMPSES = {"centered": True, "normalized": True, "uniform_noise": False, "noise": "zero"}
# Op -> the attributes that samples may leave out.
OPS = {
    "ResizeArea": {"align_corners": False},
    "ResizeBicubic": RULES,
    "ResizeBicubicGrad": RULES,
    "ResizeBilinear": RULES,
    "ResizeBilinearGrad": RULES,
    "ResizeNearestNeighbor": RULES,
    "ResizeNearestNeighborGrad": RULES,
    "ScaleAndTranslate": SAMPLING,
    "ScaleAndTranslateGrad": SAMPLING,
    "AdjustContrastv2": {},
    "AdjustHue": {},
    "AdjustSaturation": {},
    "HSVToRGB": {},
    "RGBToHSV": {},
    "CropAndResize": CROPS,
    "CropAndResizeGradBoxes": CROPS,
    "CropAndResizeGradImage": CROPS,
    "ExtractGlimpse": GLIMPSES,
}


@pytest.mark.parametrize("op", OPS)
def test_kernels_keep_to_the_standard(op):
    definition = registry.get(op).definition
    (kernel,) = mount(xp).for_op(op)
    for sample in samples_for(op, np.float32):
        attrs = {**OPS[op], **sample.attrs}
        kinds = [as_dtype(x.dtype) for x in sample.inputs]
        sig = NodeSig(op, op, attrs, [None] * len(kinds), kinds, [None], [as_dtype("float32")])
        inputs = [
            x if argument.name in kernel.host_inputs else xp.asarray(x)
            for argument, x in zip(definition.inputs, sample.inputs, strict=True)
        ]
        got = kernel.bind(sig)(*inputs)
        want = reference_for(op)(attrs, *(widen(x) for x in sample.inputs))
        np.testing.assert_allclose(
            np.asarray(got), want, rtol=1e-4, atol=1e-4, err_msg=f"{op} {sample.tag}"
        )
