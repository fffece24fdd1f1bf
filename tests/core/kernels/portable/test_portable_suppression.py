"""Boxes chosen in blocks, against the walk through them one by one that the oracle makes."""

from __future__ import annotations

import array_api_strict as xp
import numpy as np
import pytest

from opdock.dtypes import as_dtype
from opdock.graph.nodes import registry
from opdock.kernels import suppression
from opdock.kernels.portable import mount
from opdock.kernels.select.signature import NodeSig
from opdock.testing.reference._registry import reference_for, widen

F32, I32 = as_dtype("float32"), as_dtype("int32")


def _outputs(op, attrs, inputs):
    """What the portable kernel gives, and what the oracle."""
    definition = registry.get(op).definition
    names = [argument.name for argument in definition.inputs]
    kinds = [as_dtype(x.dtype) for x in inputs]
    count = len(definition.outputs)
    sig = NodeSig(op, op, attrs, [None] * len(kinds), kinds, [None] * count, [I32] * count)
    (kernel,) = mount(xp).for_op(op)
    given = [
        x if name in kernel.host_inputs else xp.asarray(x)
        for name, x in zip(names, inputs, strict=True)
    ]
    got = kernel.bind(sig)(*given)
    want = reference_for(op)(attrs, *(widen(x) for x in inputs))
    both = (x if isinstance(x, tuple) else (x,) for x in (got, want))
    return [(np.asarray(g), np.asarray(w)) for g, w in zip(*both, strict=True)]


def _given(seed, count):
    """Boxes close together, of few sizes and scores: many equal ones, some without an area."""
    rng = np.random.default_rng(seed)
    corners = rng.integers(0, 8, (count, 2)) / 8
    sizes = rng.integers(-2, 4, (count, 2)) / 8
    scores = rng.integers(-2, 9, count) / 8
    return np.concatenate([corners, corners + sizes], 1).astype("f4"), scores.astype("f4")


@pytest.mark.parametrize("pairs", [1, 150, 1 << 22], ids=["singly", "in-blocks", "at-once"])
@pytest.mark.parametrize("most", [0, 3, 100])
def test_it_does_not_matter_how_many_are_compared_at_once(pairs, most, monkeypatch):
    monkeypatch.setattr(suppression, "_PAIRS_AT_ONCE", pairs)
    dropped = 0
    for seed in range(6):
        boxes, scores = _given(seed, 30)
        limit, least = np.float32([0.3, 0.6][seed % 2]), np.float32(0.0)
        inputs = [boxes, scores, np.int32(most), limit, least]
        ((got, want),) = _outputs("NonMaxSuppressionV3", {}, inputs)
        np.testing.assert_array_equal(got, want)
        dropped += int((scores > 0).sum()) - len(got)
    assert dropped > 0


@pytest.mark.parametrize("pairs", [1, 1 << 22], ids=["singly", "at-once"])
def test_a_chain_in_which_every_box_overlaps_the_next(pairs, monkeypatch):
    """Each second one stays, which is known of the last one last."""
    monkeypatch.setattr(suppression, "_PAIRS_AT_ONCE", pairs)
    left = np.arange(40, dtype=np.float32)
    boxes = np.stack([left * 0, left, left * 0 + 1, left + 1.9], 1)
    inputs = [boxes, -left, np.int32(99), np.float32(0.2), np.float32(-99)]
    ((got, want),) = _outputs("NonMaxSuppressionV3", {}, inputs)
    np.testing.assert_array_equal(got, np.arange(0, 40, 2))
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("sigma", [0.0, 0.3])
@pytest.mark.parametrize("pad", [True, False])
def test_scores_that_sink(sigma, pad):
    for seed in range(4):
        boxes, scores = _given(seed, 20)
        thresholds = [np.float32(0.7), np.float32(0.1), np.float32(sigma)]
        attrs = {"pad_to_max_output_size": pad}
        inputs = [boxes, scores, np.int32(12), *thresholds]
        for got, want in _outputs("NonMaxSuppressionV5", attrs, inputs):
            np.testing.assert_allclose(got, want, rtol=1e-6)


@pytest.mark.parametrize("pairs", [1, 1 << 22], ids=["singly", "at-once"])
def test_classes_of_several_images(pairs, monkeypatch):
    monkeypatch.setattr(suppression, "_PAIRS_AT_ONCE", pairs)
    for seed, (sets, pad) in enumerate([(1, False), (3, True), (3, False)]):
        rng = np.random.default_rng(seed)
        boxes = np.stack([_given(i, 9 * sets)[0].reshape(9, sets, 4) for i in (seed, seed + 9)])
        scores = (rng.integers(0, 6, (2, 9, 3)) / 5).astype(np.float32)
        asked = [np.int32(4), np.int32(7), np.float32(0.4), np.float32(0.1)]
        attrs = {"pad_per_class": pad, "clip_boxes": not pad}
        for got, want in _outputs("CombinedNonMaxSuppression", attrs, [boxes, scores, *asked]):
            np.testing.assert_array_equal(got, want)
