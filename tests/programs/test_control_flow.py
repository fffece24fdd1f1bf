"""Programs that are written in Python's control flow, which becomes a part of their graphs.

Each file of `control_flow/` is one program, run as it is but for the import.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.programs.running import running

PROGRAMS = Path(__file__).with_name("control_flow")


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Runs a program: its globals, and `printed`."""
    return lambda name: running(PROGRAMS / f"{name}.py", tmp_path, monkeypatch)


def test_a_pipeline_of_plain_functions(run) -> None:
    with run("cleaned_numbers") as p:
        assert p.right
        assert len(p.rows) > 100
        assert np.mean(p.losses[-20:]) < 0.6 * p.losses[0]


def test_beam_search(run) -> None:
    with run("beam_search") as p:
        sentences, scores, words = p.found
        assert words <= p.LONGEST
        best = p.ranked(p.LONGEST)[0]
        assert sentences[0, 1:].tolist() == list(best)
        np.testing.assert_allclose(scores[0], p.score(best), rtol=1e-5)
        sentences, scores, words = p.short
        assert words == 2
        assert sentences[0, 1:].tolist() == list(p.ranked(2)[0])


def test_a_recurrent_network(run) -> None:
    with run("recurrent") as p:
        outputs, state, same_outputs, same_state, slopes = p.both
        np.testing.assert_allclose(outputs, same_outputs, atol=1e-6)
        np.testing.assert_allclose(state, same_state, atol=1e-6)
        for mine, theirs in zip(*slopes, strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-5)
        assert np.mean(p.losses[-10:]) < 0.1 * p.losses[0]


def test_every_program_has_a_test() -> None:
    said = Path(__file__).read_text(encoding="utf-8")
    assert not [p.stem for p in PROGRAMS.glob("*.py") if p.stem not in said]
