"""Fixture plugins that are really installed: by pip, into a folder that a subprocess sees."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

FIXTURES = Path(__file__).parent / "fixtures"


class Site:
    """A folder with installed distributions, and Python processes that see it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def run(self, *command: str, check: bool = True, **environ: str) -> subprocess.CompletedProcess:
        env = {k: v for k, v in os.environ.items() if not k.startswith("OPDOCK_")}
        env |= {"PYTHONPATH": str(self.path), "OPDOCK_PROBE_TIMEOUT": "3600"} | environ
        done = subprocess.run(
            [sys.executable, *command],
            env=env,
            capture_output=True,
            text=True,
            check=False,
        )
        assert not check or done.returncode == 0, done.stdout + done.stderr
        return done

    def doctor(self, *options: str, check: bool = True, **environ: str) -> dict[str, Any]:
        done = self.run(
            "-m", "opdock.cli.main", "doctor", "--json", *options, check=check, **environ
        )
        return json.loads(done.stdout)

    def plugins(self, **environ: str) -> dict[str, dict[str, Any]]:
        """Status by distribution."""
        return {p["distribution"]: p for p in self.doctor(**environ)["plugins"]}


_BUILD = """
import os, sys
from hatchling.build import build_wheel
out, *projects = sys.argv[1:]
for project in projects:
    os.chdir(project)
    build_wheel(out)
"""


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """All fixture distributions, built in one process and installed together."""
    wheels, target = tmp_path_factory.mktemp("wheels"), tmp_path_factory.mktemp("site")
    projects = [p.parent for p in sorted(FIXTURES.glob("*/pyproject.toml"))]
    subprocess.run([sys.executable, "-c", _BUILD, wheels, *projects], check=True)
    words = ("--disable-pip-version-check", "--quiet", "install", "--no-deps", "--no-index")
    where = ("--target", str(target))
    subprocess.run([sys.executable, "-m", "pip", *words, *where, *wheels.iterdir()], check=True)
    return Site(target)
