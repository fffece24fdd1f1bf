"""Runs the programs of `real/`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.programs.running import running

REAL = Path(__file__).with_name("real")


@pytest.fixture
def ran(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Runs a program: its globals, and `printed`."""
    with running(REAL / f"{request.param}.py", tmp_path, monkeypatch) as found:
        yield found
