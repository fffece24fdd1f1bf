"""Samples of connectionist temporal classification, tiny because the oracle counts alignments."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from opdock.testing.harness.sample import ErrorSample, Sample, Sampler, error_samples, samples

# The second output is a gradient itself, and TF gives no derivative of it.
_LOSS = (0,)


def _labels(rows: list[list[int]]) -> list[Any]:
    indices = [(b, i) for b, row in enumerate(rows) for i in range(len(row))]
    values = [v for row in rows for v in row]
    return [np.array(indices, np.int64).reshape(-1, 2), np.array(values, np.int32)]


@samples("CTCLoss")
def ctc_loss(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Repeats, short entries, and each attribute."""
    plain = [*_labels([[0, 1], [1]]), np.array([4, 3], np.int32)]
    yield Sample([rng.normal((4, 2, 3)), *plain], tag="plain", grad_outputs=(0,))
    repeated = [*_labels([[1, 1, 0]]), np.array([5], np.int32)]
    for name in ("preprocess_collapse_repeated", "ctc_merge_repeated"):
        for on in (False, True):
            tag = f"{name.split('_')[1]}-{on}"
            inputs = [rng.normal((5, 1, 3)), *repeated]
            yield Sample(inputs, {name: on}, tag, grad_outputs=(0,))
    long = [*_labels([[0, 1, 0], [1]]), np.array([2, 2], np.int32)]
    attrs = {"ignore_longer_outputs_than_inputs": True}
    yield Sample([rng.normal((2, 2, 3)), *long], attrs, "too-long", grad_outputs=_LOSS)
    none = [*_labels([[], [0]]), np.array([2, 2], np.int32)]
    yield Sample([rng.normal((2, 2, 3)), *none], tag="no-label", grad_outputs=_LOSS)


@samples("CTCGreedyDecoder")
def ctc_greedy_decoder(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """With and without merging."""
    lengths = np.array([6, 3], np.int32)
    for merge in (False, True):
        inputs = [rng.distinct((6, 2, 3)), lengths]
        yield Sample(inputs, {"merge_repeated": merge}, f"merge-{merge}")


@samples("CTCBeamSearchDecoder")
def ctc_beam_search_decoder(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """One path and several, with and without merging."""
    lengths = np.array([4, 3], np.int32)
    for paths, merge in ((1, False), (3, False), (2, True)):
        attrs = {"beam_width": 100, "top_paths": paths, "merge_repeated": merge}
        yield Sample([rng.normal((4, 2, 3)), lengths], attrs, f"{paths}-{merge}")


@error_samples("CTCBeamSearchDecoder")
def ctc_beam_search_errors() -> Iterable[ErrorSample]:
    """More paths than there are, or than the beam holds."""
    inputs = [np.zeros((1, 1, 2), np.float32), np.array([1], np.int32)]
    attrs = {"beam_width": 9, "top_paths": 3, "merge_repeated": True}
    yield ErrorSample(inputs, attrs, match="Less leaves in the beam search", tag="few")
    attrs = {"beam_width": 2, "top_paths": 3, "merge_repeated": True}
    yield ErrorSample(inputs, attrs, match="more paths than the beam width", tag="narrow")


@error_samples("CTCLoss")
def ctc_loss_errors() -> Iterable[ErrorSample]:
    """Labels out of range, or more of them than steps."""
    logits = np.zeros((2, 1, 3), np.float32)
    two = np.array([2], np.int32)
    yield ErrorSample([logits, *_labels([[2]]), two], match="non-null label", tag="blank")
    yield ErrorSample([logits, *_labels([[0, 1, 0]]), two], match="Not enough time", tag="long")
