"""Each call of the system that writes a file fails once: a typed error, and nothing is lost."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent / "surroundings"
PROGRAM = FOLDER / "writes_while_calls_fail.py"


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> str:
    compiler = shutil.which("cc")
    if compiler is None or not sys.platform.startswith("linux"):
        pytest.skip("needs Linux and a C compiler, to stand between a program and its system")
    made = str(tmp_path_factory.mktemp("library") / "failing_calls.so")
    source = str(FOLDER / "failing_calls.c")
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", made, source, "-ldl"], check=True)
    return made


@pytest.mark.parametrize(
    "kind",
    [
        "sharded checkpoint",
        "cache",
        pytest.param("checkpoint", marks=pytest.mark.prove),
        pytest.param("checkpoint of one name", marks=pytest.mark.prove),
        pytest.param("export", marks=pytest.mark.prove),
        pytest.param("records", marks=pytest.mark.prove),
    ],
)
def test_what_is_written_while_calls_fail(library: str, kind: str) -> None:
    environment = {**os.environ, "LD_PRELOAD": library, "OPDOCK_DISABLE": "opencl"}
    line = [sys.executable, str(PROGRAM), library, kind]
    done = subprocess.run(line, check=True, env=environment, stdout=subprocess.PIPE, text=True)
    said = json.loads(done.stdout)
    assert said["wrong"] == []
    assert said["trials"] > 30
