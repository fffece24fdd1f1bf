"""Programs that lean on `tf.contrib` and `tf.distributions`: see `test_real.py`."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import opdock as tf
from tests.programs.test_real import CHECKS, falls


def seq2seq_beam(p: SimpleNamespace) -> None:
    falls(p.losses, to=0.05)
    assert p.accuracy > 0.9
    # The beams of an example are different sequences, the best first, and end but once.
    assert p.beams.shape[2] == p.BEAM
    ends = np.cumsum(p.beams == p.EOS, axis=1)
    assert ((ends == 0) | (p.beams == p.EOS) | (ends > 1)).all()
    names = {v.op.name for v in tf.trainable_variables()}
    assert {
        "encoder/rnn/gru_cell/gates/kernel", "decoder/memory_layer/kernel",
        "decoder/decoder/projection/kernel",
        "decoder/decoder/attention_wrapper/attention_layer/kernel",
        "decoder/decoder/attention_wrapper/luong_attention/attention_g",
    } <= names, names  # fmt: skip


def crf_tagger(p: SimpleNamespace) -> None:
    falls(p.losses, to=0.6)
    assert p.accuracy > p.without + 0.1
    # It has learned the circle: each tag is followed by the next.
    assert np.argmax(p.matrix, 1).tolist() == [1, 2, 0]


def clusters(p: SimpleNamespace) -> None:
    clouds = [p.points[p.kinds == k] for k in range(3)]
    means = np.stack([cloud.mean(0) for cloud in clouds])
    np.testing.assert_allclose(p.middles[p.order], means, atol=0.3)
    assert (p.found == p.kinds).mean() > 0.98
    # Each step makes the points likelier, and the parts are the clouds that they were drawn from.
    assert np.all(np.diff(p.likelihoods) > -1e-4)
    assert p.likelihoods[-1] > p.likelihoods[0] + 0.3
    assert (p.labels == p.kinds).mean() > 0.98
    np.testing.assert_allclose(p.parts["clusters"][:, 0], means, atol=0.1)
    variances = np.diagonal(p.parts["clusters_covs"], axis1=1, axis2=2)
    np.testing.assert_allclose(np.sqrt(variances), [c.std(0) for c in clouds], atol=0.1)
    np.testing.assert_allclose(p.parts["alphas"], np.bincount(p.kinds) / 300, atol=0.02)


def vae_distributions(p: SimpleNamespace) -> None:
    falls(p.losses, to=0.5)
    assert ((p.back > 0.5) == (p.bars > 0.5)).mean() > 0.95
    # Eight images cost about the three bits that tell them apart, and codes are not points.
    assert np.log(8) * 0.8 < p.extra.mean() < 8
    assert p.spread.min() > 0.01


OWN = (seq2seq_beam, crf_tagger, clusters, vae_distributions)


def test_every_program_is_checked() -> None:
    programs = {p.stem for p in Path(__file__).with_name("real").glob("*.py")}
    assert programs == {*CHECKS, *(f.__name__ for f in OWN)}


@pytest.mark.parametrize(("ran", "checks"), [(f.__name__, f) for f in OWN], indirect=["ran"])
def test_program(ran: SimpleNamespace, checks) -> None:
    checks(ran)
