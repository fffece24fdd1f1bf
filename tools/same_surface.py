"""Compares the code that two revisions run for the same programs: `python tools/same_surface.py`.

How much code a package has says little once it does more. So the programs are the tests that the
earlier revision had in `tests/core` and `tests/programs` and that import nothing but the public
package, as programs do. Both revisions' packages run them, each in a process of its own, and those
that pass with both count: all functions that they enter, whole, in lines of code as
`tools/count_code.py` counts them. Statements of modules and classes, which an import runs, do not
count: one statement defines what today has as well as what there was. Functions that both have are
those of one name in a class of one name, wherever they stand.
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import threading
import tomllib
from collections import Counter
from collections.abc import Generator
from pathlib import Path
from types import CodeType, FrameType

import pytest
from count_code import ROOT, code_lines, files

THEN = "31b2f744"  # the revision before issue 9
FOLDERS = ("tests/conftest.py", "tests/core/", "tests/programs/")


class Recorder:
    """A pytest plugin: which functions each passing test enters, on any thread."""

    def __init__(self) -> None:
        self.seen: dict[int, CodeType] = {}
        self.passed: dict[str, list[tuple[str, int]]] = {}
        self.reports: dict[str, list[str]] = {}

    def called(self, frame: FrameType, event: str, arg: object) -> None:
        """Takes note of a call; returns nothing, so that no line is traced."""
        self.seen[id(frame.f_code)] = frame.f_code

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Looks at all of a test, what it sets up and tears down too."""
        self.seen.clear()
        threading.settrace(self.called)
        sys.settrace(self.called)
        try:
            return (yield)
        finally:
            sys.settrace(None)
            threading.settrace(None)  # type: ignore[arg-type]
            if set(self.reports[item.nodeid]) == {"passed"}:
                codes = list(self.seen.values())  # at once: other threads may still add some
                entered = {(c.co_filename, c.co_firstlineno) for c in codes}
                self.passed[item.nodeid] = sorted(entered)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Notes how a test's setup, call and teardown went."""
        self.reports.setdefault(report.nodeid, []).append(report.outcome)


def record(package: Path, tests: Path, to: Path) -> None:
    """Runs tests with a package, and writes what those that pass enter of it."""
    sys.path.insert(0, str(package))
    recorder = Recorder()
    chosen = [str(path.relative_to(tests)) for path in sorted(tests.rglob("test_*.py"))]
    options = ["-q", "--no-header", "--tb=no", "-p", "no:cacheprovider"]
    options += ["--continue-on-collection-errors", "--timeout=60", f"--rootdir={tests}"]
    pytest.main([*options, *chosen], plugins=[recorder])
    inside = f"{package}{os.sep}"
    found = {
        test: [(name.removeprefix(inside), line) for name, line in entered if inside in name]
        for test, entered in recorder.passed.items()
    }
    to.write_text(json.dumps(found), encoding="utf-8")


def unpack(revision: str, folder: Path) -> None:
    """Writes the packages of a revision into one folder, with the entry points of each."""
    for path, content in files(revision):
        file = folder / path.partition("/src/")[2]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    names = subprocess.run(
        ["git", "ls-tree", "-r", "--name-only", revision, "core", "backends", "plugins"],
        cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True,
    ).stdout  # fmt: skip
    for path in names.split():
        if path.endswith("pyproject.toml"):
            command = ["git", "show", f"{revision}:{path}"]
            text = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout
            project = tomllib.loads(text.decode())["project"]
            about = folder / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
            about.mkdir()
            head = f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}"
            (about / "METADATA").write_text(f"{head}\n", encoding="utf-8")
            lines = [
                f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in points.items())
                for group, points in project.get("entry-points", {}).items()
            ]
            (about / "entry_points.txt").write_text("".join(lines), encoding="utf-8")


def unpack_tests(revision: str, under: list[str], folder: Path) -> None:
    """Writes the tests that import only the public package, and what they read."""
    command = ["git", "archive", revision, *under]
    packed = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        archive.extractall(folder, filter="data")
    for path in (*folder.rglob("test_*.py"), *folder.rglob("conftest.py")):
        if not _public(ast.parse(path.read_text(encoding="utf-8"))):
            path.unlink()


def _public(tree: ast.Module) -> bool:
    """Whether a module imports nothing of the package but `opdock`, and no other test."""
    for node in ast.walk(tree):
        names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
        if any(n.startswith(("opdock", "tests")) and n != "opdock" for n in names):
            return False
    return True


def run(package: Path, tests: Path) -> dict[str, set[tuple[str, int]]]:
    """What each test that passes with a package enters of it."""
    to = package.with_suffix(".json")
    command = [
        sys.executable,
        "-W",
        "ignore",
        __file__,
        "--record",
        *map(str, (package, tests, to)),
    ]
    kept = {"XDG_CACHE_HOME": str(package.with_suffix(".cache"))}
    subprocess.run(command, cwd=tests, env={**os.environ, **kept}, check=True, stdout=sys.stderr)
    found = json.loads(to.read_text(encoding="utf-8"))
    return {test: {(name, line) for name, line in entered} for test, entered in found.items()}


def lines_of(package: Path, entered: set[tuple[str, int]]) -> tuple[Counter[str], Counter[str]]:
    """The lines of code of the functions that were entered, by file and by name."""
    by_file, by_name = Counter[str](), Counter[str]()
    for name in {name for name, _ in entered}:
        text = (package / name).read_text(encoding="utf-8")
        tree = ast.parse(text)
        code, within = code_lines(text, tree), set[int]()
        for owner in ast.walk(tree):
            for node in ast.iter_child_nodes(owner):
                if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
                    continue
                decorators = getattr(node, "decorator_list", [])
                first = decorators[0].lineno if decorators else node.lineno
                if (name, first) in entered:
                    own = code.intersection(range(first, (node.end_lineno or first) + 1))
                    if isinstance(owner, (ast.Module, ast.ClassDef)):
                        place = f"{owner.name}." if isinstance(owner, ast.ClassDef) else ""
                        by_name[place + getattr(node, "name", "lambda")] += len(own)
                    within |= own
        by_file[name] = len(within)
    return by_file, by_name


def folder_of(name: str) -> str:
    """The package that a file is in, or its folder where that is core's."""
    first, *rest = name.split("/")
    return f"{first}/{rest[0]}" if first == "opdock" and len(rest) > 1 else first


def main() -> None:
    """The command."""
    p = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    p.add_argument("then", nargs="?", default=THEN)
    p.add_argument("now", nargs="?", default="HEAD")
    p.add_argument("--files", action="store_true", help="each file of more than 50 lines as well")
    p.add_argument("--under", default=[*FOLDERS], nargs="*", help="folders with the tests")
    p.add_argument("--record", nargs=3, type=Path, help=argparse.SUPPRESS)
    args = p.parse_args()
    if args.record:
        record(*args.record)
        return
    with tempfile.TemporaryDirectory() as folder:
        tests, packages = Path(folder, "run"), (Path(folder, "then"), Path(folder, "now"))
        unpack_tests(args.then, args.under, tests)
        for revision, package in zip((args.then, args.now), packages, strict=True):
            unpack(revision, package)
        ran = [run(package, tests) for package in packages]
        both = ran[0].keys() & ran[1].keys()
        entered = [set[tuple[str, int]]().union(*(of[test] for test in both)) for of in ran]
        found = [lines_of(*of) for of in zip(packages, entered, strict=True)]
    counts, named = zip(*found, strict=True)
    shared = named[0].keys() & named[1].keys()
    print(f"{len(both):,} of {len(ran[0]):,} tests that pass with {args.then} pass with {args.now}")
    by_folder = [Counter[str]() for _ in counts]
    for count, total in zip(counts, by_folder, strict=True):
        for name, lines in count.items():
            total[folder_of(name)] += lines
    print(f"{'':32}", *(f"{revision[:12]:>12}" for revision in (args.then, args.now)))
    print(f"{'functions entered':32}", *(f"{len(of):12,}" for of in entered))
    print(f"{'their code':32}", *(f"{of.total():12,}" for of in counts))
    print(f"{f'of {len(shared):,} that both have':32}", *(
        f"{sum(of[name] for name in shared):12,}" for of in named
    ))  # fmt: skip
    for tables, least in ((by_folder, 0), (counts, 50)):
        rows = {name for of in tables for name, lines in of.items() if lines > least}
        for name in sorted(rows) if least == 0 or args.files else ():
            print(f"{name:48}", *(f"{of[name]:8,}" for of in tables))


if __name__ == "__main__":
    main()
