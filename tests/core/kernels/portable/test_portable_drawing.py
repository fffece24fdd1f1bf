"""The portable kernels of boxes and of glimpses where a place may be anything."""

from __future__ import annotations

import array_api_strict as xp
import numpy as np
import pytest

from opdock.dtypes import as_dtype
from opdock.kernels.portable import mount
from opdock.kernels.select.signature import NodeSig
from opdock.testing.reference._registry import reference_for, widen

F32 = as_dtype("float32")


def _kernel(op, attrs, count):
    (kernel,) = mount(xp).for_op(op)
    return kernel, NodeSig(op, op, attrs, [None] * count, [F32] * count, [None], [F32])


def _boxes(seed, batch, count):
    """Boxes inside, inverted, beyond the image, on its edges."""
    rng = np.random.default_rng(seed)
    boxes = rng.uniform(-0.4, 1.4, (batch, count, 4)).astype(np.float32)
    boxes[rng.random(boxes.shape) < 0.2] = 0
    boxes[rng.random(boxes.shape) < 0.2] = 1
    return boxes


@pytest.mark.parametrize("seed", range(12))
def test_the_last_of_many_boxes_is_seen(seed):
    shape = [(2, 9, 7, 3), (1, 1, 6, 1), (3, 5, 1, 4)][seed % 3]
    images = np.random.default_rng(seed).uniform(0, 1, shape).astype(np.float32)
    inputs = [images, _boxes(seed, shape[0], 25)]
    op = "DrawBoundingBoxes"
    if seed % 2:
        op = "DrawBoundingBoxesV2"
        inputs.append(np.random.default_rng(seed).uniform(0, 1, (3, 4)).astype(np.float32))
    kernel, sig = _kernel(op, {}, len(inputs))
    got = np.asarray(kernel.bind(sig)(*(xp.asarray(x) for x in inputs)))
    want = reference_for(op)({}, *(widen(x) for x in inputs))
    np.testing.assert_array_equal(got, np.asarray(want, np.float32))
    assert (got != images).any()


@pytest.mark.parametrize("places", [[np.nan, 0.0], [np.inf, -np.inf], [3e38, -3e38], [0.0, 1.0]])
@pytest.mark.parametrize("normalized", [True, False])
def test_a_glimpse_from_nowhere_is_empty(places, normalized):
    attrs = {"centered": True, "normalized": normalized, "uniform_noise": False, "noise": "zero"}
    kernel, sig = _kernel("ExtractGlimpse", attrs, 3)
    images = np.arange(1, 31, dtype=np.float32).reshape(1, 5, 6, 1)
    inputs = xp.asarray(images), np.array([3, 2], np.int32), xp.asarray(np.float32([places]))
    with np.errstate(over="ignore"):
        got = np.asarray(kernel.bind(sig)(*inputs))
    assert got.shape == (1, 3, 2, 1)
    outside = abs(np.nan_to_num(np.array(places))).max() > 2
    assert (got == 0).all() == outside


def test_noise_is_the_hosts():
    attrs = {"centered": True, "normalized": True, "uniform_noise": True, "noise": "uniform"}
    kernel, sig = _kernel("ExtractGlimpse", attrs, 3)
    assert kernel.when(sig) == "margins of noise are drawn on the host"
