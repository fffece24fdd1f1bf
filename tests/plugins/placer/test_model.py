"""What a cost model predicts, and what files it takes."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from opdock_placer.model import CostModel, Work, fit


def known() -> CostModel:
    model = CostModel()
    for size in (1e3, 1e5, 1e6, 1e7):
        model.add("CPU:0", "Tanh", Work(size), 1e-6 + size * 1e-9)
        model.add("GPU:0", "Tanh", Work(size), 1e-5 + size * 1e-11)
        model.add_copy("GPU:0", "upload", Work(size), 2e-5 + size * 1e-10)
        model.add_copy("GPU:0", "download", Work(size), 3e-5 + size * 1e-10)
    model.add("CPU:0", "Sort", Work(1e6), 5e-3)
    model.free = {"Const"}
    return model


def test_curves_give_back_what_they_were_made_of() -> None:
    model = known()
    assert model.seconds("CPU:0", "Tanh", Work(2e6)) == pytest.approx(2.001e-3, rel=1e-3)
    assert model.seconds("GPU:0", "Tanh", Work(2e6)) == pytest.approx(3e-5, rel=1e-3)
    # One sample: as the device's ops, as much slower as the sample was.
    assert model.seconds("CPU:0", "Sort", Work(1e6)) == pytest.approx(5e-3, rel=1e-2)
    assert model.seconds("CPU:0", "Sort", Work(2e6)) == pytest.approx(1e-2, rel=1e-1)
    assert model.seconds("GPU:0", "Sort", Work(1e6)) == math.inf  # it has not run it
    assert model.seconds("GPU:0", "Const", Work(1e9)) == 0.0
    assert 0 < model.seconds("GPU:0", "NeverSeen", Work(1e6)) < math.inf


def test_copies_go_through_the_host() -> None:
    model = known()
    work = Work(1e6)
    up, down = (
        model.copy_seconds(*ends, work) for ends in [("CPU:0", "GPU:0"), ("GPU:0", "CPU:0")]
    )
    assert (up, down) == pytest.approx((1.2e-4, 1.3e-4), rel=1e-3)
    assert model.copy_seconds("GPU:0", "GPU:0", work) == 0
    model.copies["GPU:1"] = model.copies["GPU:0"]
    assert model.copy_seconds("GPU:0", "GPU:1", work) == pytest.approx(up + down)


def test_no_samples_and_no_time() -> None:
    assert fit([]) == (0.0, 0.0, 0.0)
    assert fit([(Work(0.0), 0.0)]) == (0.0, 0.0, 0.0)
    constant, a_byte, a_product = fit([(Work(0.0), 2.0)])
    assert (constant, a_byte, a_product) == pytest.approx((2.0, 0.0, 0.0))


def test_a_file_gives_the_same_model_back(tmp_path: Path) -> None:
    known().save(tmp_path / "m.json")
    assert CostModel.load(tmp_path / "m.json") == known()
    with pytest.raises(FileNotFoundError):
        CostModel.load(tmp_path / "other.json")


def whole() -> dict[str, Any]:
    return {
        "version": 1, "preferred": "CPU:0", "free": [], "copies": {},
        "ops": {"CPU:0": {"Tanh": [[8.0, 0.0, 1.0]]}},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"version": 2}, "version"),
        ({"preferred": 3}, "preferred"),
        ({"free": [1]}, "free"),
        ({"ops": []}, "ops"),
        ({"ops": {"CPU:0": []}}, "ops"),
        ({"ops": {"CPU:0": {"Tanh": [[1.0, 2.0]]}}}, r"ops\.CPU:0\.Tanh"),
        ({"ops": {"CPU:0": {"Tanh": [[-1.0, 0.0, 1.0]]}}}, r"ops\.CPU:0\.Tanh"),
        ({"ops": {"CPU:0": {"Tanh": [[float("nan"), 0.0, 1.0]]}}}, r"ops\.CPU:0\.Tanh"),
        ({"copies": {"CPU:0": {"upload": 3}}}, r"copies\.CPU:0\.upload"),
    ],
)
def test_files_that_are_none(change: dict[str, Any], where: str, tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    path.write_text(json.dumps(whole() | change), encoding="utf-8")
    with pytest.raises(ValueError, match=f"is no cost model: {where}"):
        CostModel.load(path)


@pytest.mark.parametrize("text", ["", "[", "[]", "[" * 100_000, '{"version": 1e999}'])
def test_files_of_something_else(text: str, tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match="is no cost model"):
        CostModel.load(path)
