"""A training where what programs are used to is missing: it works, or says what it lacks."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

PROGRAM = Path(__file__).parent / "surroundings" / "trains_anywhere.py"
NOWHERE = "/proc/nowhere"  # where nobody can make a folder, whoever the user is
MIB = 2**20
prove = pytest.mark.prove


def limited(what: int, to: int) -> Callable[[], None]:
    return lambda: resource.setrlimit(what, (to, to))


def trains(tmp_path: Path, **options: Any) -> str:
    """What the program says at its end, into a file: streams may be closed."""
    unset = options.pop("unset", ())
    environment = {**os.environ, "OPDOCK_DISABLE": "opencl", **options.pop("environment", {})}
    for name in unset:
        environment.pop(name, None)
    line = [sys.executable, str(PROGRAM), str(tmp_path / "checkpoints"), str(tmp_path / "told")]
    shell = options.pop("shell", "")
    if shell:
        line = ["sh", "-c", f'exec "$@" {shell}', "sh", *line]
    done = subprocess.run(line, check=False, env=environment, **options)
    assert done.returncode == 0
    return (tmp_path / "told").read_text()


CACHES = ("XDG_CACHE_HOME", "OPDOCK_CACHE")


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({"unset": ("HOME", *CACHES)}, id="no home", marks=prove),
        pytest.param(
            {"unset": CACHES, "environment": {"HOME": NOWHERE, "TMPDIR": NOWHERE}},
            id="a home and a temporary folder that are not there",
        ),
        pytest.param(
            {"unset": ("OPDOCK_CACHE",), "environment": {"XDG_CACHE_HOME": "/dev/null"}},
            id="a cache that is no folder", marks=prove,
        ),
        pytest.param({"shell": "<&- >&- 2>&-"}, id="closed streams"),
        pytest.param({"shell": ">/dev/full 2>/dev/full"}, id="full streams", marks=prove),
        pytest.param(
            {"preexec_fn": limited(resource.RLIMIT_NOFILE, 16)}, id="sixteen files", marks=prove
        ),
        pytest.param(
            {"preexec_fn": limited(resource.RLIMIT_AS, 2000 * MIB)}, id="two gigabytes", marks=prove
        ),
    ],
)  # fmt: skip
def test_training_works(tmp_path, options):
    assert trains(tmp_path, **options) == "2.0"


def test_files_that_may_not_grow_are_a_typed_error(tmp_path):
    said = trains(
        tmp_path, preexec_fn=limited(resource.RLIMIT_FSIZE, 3000), stderr=subprocess.DEVNULL
    )
    assert said.startswith("ResourceExhaustedError"), said
    assert "checkpoints" in said
