"""Hostile files get typed errors or right answers; `make fuzz` reads very many more of them."""

from __future__ import annotations

import json
import os
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


def test_what_unpacks_to_gigabytes() -> None:
    """Refused, or not unpacked, in a process that has 96 MB for it."""
    # So that memory goes back to the system once nothing needs it.
    environment = {**os.environ, "MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_ARENA_MAX": "1"}
    words = [sys.executable, "-m", "tests.hostile.bombs"]
    done = subprocess.run(words, check=False, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    assert dict(map(json.loads, done.stdout.splitlines())) == {
        **dict.fromkeys(
            (
                "line", "fixed length", "footer", "csv", "gzip record", "zlib record",
                "decode_compressed ZLIB", "decode_compressed GZIP", "width",
            ),
            "ResourceExhaustedError",
        ),
        **dict.fromkeys(
            (
                "plain record", "png of many pixels", "jpeg of many pixels", "jpeg of some pixels",
                "gif of many frames", "bmp of many pixels", "tensor", "tensor beyond all",
                "nested json",
            ),
            "InvalidArgumentError",
        ),
        "png of too many bytes": "read",  # it has nine pixels, and no more is unpacked
        "png of a comment": "read",
    }  # fmt: skip
