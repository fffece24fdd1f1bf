"""Where the recorded answers of real TensorFlow are, and their replay program as a module.

They are data of another place, too large for this repository: a checkout beside
`shared/tf-reference` finds them, or OPDOCK_TF_REFERENCE names their folder. Without them these
tests are skipped: nothing here could stand in for real TensorFlow's answers.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


def _find() -> Path | None:
    named = os.environ.get("OPDOCK_TF_REFERENCE")
    if named:
        folder = Path(named)
        if not (folder / "replay.py").is_file():
            raise pytest.UsageError(f"OPDOCK_TF_REFERENCE={named}: there is no replay.py in it")
        return folder
    folder = ROOT.parent / "shared" / "tf-reference"
    return folder if (folder / "replay.py").is_file() else None


FOLDER = _find()
needs_reference = pytest.mark.skipif(
    FOLDER is None,
    reason="TensorFlow's recorded answers are not here (set OPDOCK_TF_REFERENCE to their folder)",
)


def replay() -> ModuleType:
    """The replay program, imported from where it lies."""
    if FOLDER is None:
        raise RuntimeError("no reference folder")
    if "tf_reference_replay" not in sys.modules:
        spec = importlib.util.spec_from_file_location("tf_reference_replay", FOLDER / "replay.py")
        assert spec and spec.loader
        module = importlib.util.module_from_spec(spec)
        sys.modules["tf_reference_replay"] = module
        spec.loader.exec_module(module)
    return sys.modules["tf_reference_replay"]


def load(name: str) -> dict[str, Any]:
    """One JSON file of the reference."""
    if FOLDER is None:
        raise RuntimeError("no reference folder")
    return json.loads((FOLDER / name).read_text(encoding="utf-8"))


def records(name: str) -> list[dict[str, Any]]:
    """The cases of one JSON file, or none where there is no reference (the tests say so then)."""
    return load(name)["cases"] if FOLDER else []


def cases(name: str) -> list[Any]:
    """The same as pytest parameters; one stands in for all where there is no reference."""
    found = [pytest.param(record, id=record["id"]) for record in records(name)]
    return found or [pytest.param(None, id="no-reference")]
