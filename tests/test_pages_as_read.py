"""Tutorials and the pages for authors of backends are executed as by a reader: command by command.

Blocks: `sh` runs (with `exit=n` where it must fail), `text` below it stands in what was printed,
`file=` names the file that a block writes, or that a `diff` changes. What is `long`, and proven
elsewhere too, `make prove` runs.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[1] / "docs"
HOW_TO = DOCS / "how-to"
TUTORIALS = ("old-program.md", "training-that-survives.md")
# Each start of `opdock new-backend` has its page; and the files that must be there in the end.
PAGES = {
    "write-a-backend.md": "conformance.json",
    "kernels-by-hand.md": "src/opdock_tally/axes.py",
    "compile-programs.md": "src/opdock_tally/compiler.py",
}
BLOCK = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMANDS = {"opdock": "opdock.cli.main", "pip": "pip", "pytest": "pytest"}


def environment(home: Path) -> dict[str, str]:
    """A new virtual environment that sees what the running one has installed, and its PATH."""
    venv.create(home / "venv", with_pip=False, symlinks=True)
    bin_ = home / "venv" / "bin"
    (site,) = (home / "venv" / "lib").glob("python*/site-packages")
    # Editable installs are .pth files, which only `addsitedir` reads.
    here = sysconfig.get_paths()["purelib"]
    (site / "outer.pth").write_text(f"import site; site.addsitedir({here!r})\n", encoding="utf-8")
    for name, module in COMMANDS.items():
        (bin_ / name).write_text(f'#!/bin/sh\nexec python -m {module} "$@"\n', encoding="utf-8")
        (bin_ / name).chmod(0o755)
    env = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST", "OPDOCK_", "PYTHON"))}
    # The build backend is installed already, so nothing needs to be fetched.
    quiet = {"PIP_NO_BUILD_ISOLATION": "0", "PIP_NO_INDEX": "1", "PIP_NO_CACHE_DIR": "1"}
    return env | quiet | {"PATH": f"{bin_}{os.pathsep}{env['PATH']}", "COLUMNS": "140"}


class Reader:
    """Follows the page in a folder of its own."""

    def __init__(self, home: Path) -> None:
        self.env = environment(home)
        self.folder = home / "work"
        self.folder.mkdir()
        self.printed = ""

    def sh(self, text: str, options: str) -> None:
        """Runs a block in bash; the folder that it ends in is the next one's."""
        wanted = int(options.removeprefix("exit=") or 0)
        marker = self.folder.parent / f"{self.folder.name}.pwd"
        script = f"trap 'pwd > {marker}' EXIT\n{text}"
        done = subprocess.run(
            ["bash", "-eu", "-c", script], cwd=self.folder, env=self.env, text=True, check=False,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        assert done.returncode == wanted, f"$ {text}{done.stdout}"
        self.printed = done.stdout
        self.folder = Path(marker.read_text(encoding="utf-8").strip())

    def text(self, text: str, options: str) -> None:
        """Every line stands in what the last command printed, in this order."""
        at = 0
        for line in filter(None, text.splitlines()):
            found = self.printed.find(line, at)
            assert found >= 0, f"{line!r} is not in\n{self.printed}"
            at = found + len(line)

    def file(self, text: str, path: str) -> None:
        """Writes a whole file."""
        (self.folder / path).write_text(text, encoding="utf-8")

    def diff(self, text: str, path: str) -> None:
        """Replaces the lines with " " and "-", found there once, by those with " " and "+"."""
        lines = text.splitlines(keepends=True)
        old = "".join(line[1:] for line in lines if line[0] in " -")
        new = "".join(line[1:] for line in lines if line[0] in " +")
        place = self.folder / path
        before = place.read_text(encoding="utf-8")
        assert before.count(old) == 1, f"{path} holds {before.count(old)} times:\n{old}"
        place.write_text(before.replace(old, new), encoding="utf-8")


def follow(page: Path, reader: Reader, long: bool = True) -> int:
    """Does what a page says, from top to bottom, what is long if asked; the number of commands."""
    ran, left_out = 0, False
    for language, options, text in BLOCK.findall(page.read_text(encoding="utf-8")):
        options = options.strip()
        if options.startswith("file="):
            path = options.removeprefix("file=")
            reader.diff(text, path) if language == "diff" else reader.file(text, path)
        elif language == "sh":
            left_out = options == "long" and not long
            if not left_out:
                reader.sh(text, options.removeprefix("long"))
                ran += 1
        elif not left_out:
            assert language == "text", f"nothing is done with this block: {language} {options}"
            reader.text(text, options)
    return ran


@pytest.mark.parametrize("page", TUTORIALS)
def test_tutorials(page: str, tmp_path: Path) -> None:
    assert follow(DOCS / "tutorials" / page, Reader(tmp_path)) >= 5


@pytest.mark.slow
@pytest.mark.parametrize(
    ("page", "long"),
    [
        *((page, False) for page in PAGES),
        pytest.param("write-a-backend.md", True, marks=pytest.mark.prove),
    ],
)
def test_the_page_from_top_to_bottom(page: str, long: bool, tmp_path: Path) -> None:
    assert follow(HOW_TO / page, Reader(tmp_path), long) >= 3
    package = tmp_path / "work" / "opdock-tally"
    assert (package / PAGES[page]).is_file()
    # As a stranger's linter sees it: opdock is a library like any other.
    words = ("check", "--isolated", "--no-cache", "--select", "E,F,I,UP,B", "--line-length", "100")
    done = subprocess.run(
        [sys.executable, "-m", "ruff", *words, "src", "tests"],
        cwd=package, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
