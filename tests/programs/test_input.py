"""Programs that read their input through queues and readers, as those of TF 1's time did.

Each file of `input/` is one program, run as it is but for the import; it writes its data first.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.programs.running import running

INPUT = Path(__file__).with_name("input")


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Runs a program: its globals, and `printed`."""
    return lambda name: running(INPUT / f"{name}.py", tmp_path, monkeypatch)


def test_examples_in_tfrecord_files(run) -> None:
    with run("tfrecord_queue") as p:
        assert p.steps == 4 * 150 // 20, "each record comes once an epoch"
        assert p.stopped
        assert np.mean(p.losses[-5:]) < 0.4 * p.losses[0]
        assert "Done training for 4 epochs, 30 steps." in p.printed


def test_records_of_one_length(run) -> None:
    with run("cifar10_input") as p:
        assert p.shapes == {(16, 24, 24, 3)}
        assert p.right
        assert p.seen == {
            f"cifar-10-batches-bin/data_batch_{i}.bin:{j}".encode()
            for i in range(1, 4)
            for j in range(20)
        }


def test_lines_that_are_staged(run) -> None:
    with run("csv_lines") as p:
        assert np.mean(p.losses[-5:]) < 0.01 * p.losses[0]
        np.testing.assert_allclose(p.weights, p.true_weights, atol=0.05)
        assert p.left == 1


def test_every_program_has_a_test() -> None:
    said = Path(__file__).read_text(encoding="utf-8")
    assert not [p.stem for p in INPUT.glob("*.py") if p.stem not in said]
