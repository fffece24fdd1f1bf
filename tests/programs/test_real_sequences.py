"""Programs over sequences that lean on `tf.contrib`: see `test_real.py`."""

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


OWN = (seq2seq_beam, crf_tagger)


def test_every_program_is_checked() -> None:
    programs = {p.stem for p in Path(__file__).with_name("real").glob("*.py")}
    assert programs == {*CHECKS, *(f.__name__ for f in OWN)}


@pytest.mark.parametrize(("ran", "checks"), [(f.__name__, f) for f in OWN], indirect=["ran"])
def test_program(ran: SimpleNamespace, checks) -> None:
    checks(ran)
