"""Wheels built from this tree, and environments that hold third-party libraries but no opdock.

The libraries are the running environment's, by links: so tests need no network, and find what a
wheel forgot to pack.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check")


def build_wheel(project: Path, out: Path) -> Path:
    """The wheel of a project, built by the build backend that is installed here."""
    words = ("wheel", "-q", "--no-deps", "--no-build-isolation", "-w", str(out), str(project))
    subprocess.run([*_PIP, *words], check=True, capture_output=True, text=True)
    (wheel,) = out.glob("*.whl")
    return wheel


def empty_environment(home: Path) -> Path:
    """The interpreter of a new environment below `home`."""
    venv.create(home / "venv", with_pip=False, symlinks=True)
    libraries = home / "libraries"
    libraries.mkdir()
    for entry in Path(sysconfig.get_paths()["purelib"]).iterdir():
        ours = re.match(r"opdock|_?_?editable|_opdock", entry.name.lower())
        if not ours and entry.suffix != ".pth":
            (libraries / entry.name).symlink_to(entry)
    python = home / "venv" / "bin" / "python"
    (site,) = (home / "venv" / "lib").glob("python*/site-packages")
    (site / "libraries.pth").write_text(f"{libraries}\n", encoding="utf-8")
    return python


def install(python: Path, wheel: Path) -> None:
    """Installs a wheel and nothing else; what is imported is compiled when it is."""
    words = ("--python", str(python), "install", "-q", "--no-compile", "--no-deps", "--no-index")
    subprocess.run([*_PIP, *words, str(wheel)], check=True, capture_output=True, text=True)


def run(python: Path, *words: str) -> str:
    """What a command of the environment prints; it must succeed."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "OPDOCK"))}
    done = subprocess.run(
        [python, *words], capture_output=True, text=True, env=env, cwd=python.parent, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
