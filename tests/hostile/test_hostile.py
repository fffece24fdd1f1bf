"""Hostile files get typed errors or right answers; `make fuzz` reads very many more of them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.hostile.formats import FORMATS


def test_some_of_each_kind(tmp_path: Path) -> None:
    """In a process of its own, with bounds on memory and time, as all of `make fuzz`."""
    state, found = tmp_path / "at", tmp_path / "found"
    state.write_bytes(bytes(8))
    words = [sys.executable, "-m", "tests.hostile.trial", ",".join(FORMATS), "1", "0", "25"]
    done = subprocess.run(
        [*words, str(state), str(found)], check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr + Path(f"{found}.stack").read_text()
    assert found.read_text() == ""
    assert int.from_bytes(state.read_bytes(), "little") == 25
