"""Which of TensorFlow's names a code base uses, and which of those opdock does not have."""

from __future__ import annotations

import functools
import importlib
import importlib.metadata
import importlib.util
import os
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from opdock.legacy import names as legacy
from opdock.mapping import coverage
from opdock.survey.outdated import outdated_of, python2_syntax
from opdock.survey.uses import Use, reading_of
from opdock.syntax import tree_of

_SKIPPED: Final = frozenset({"__pycache__", "node_modules", "build", "dist"})
_ROOTS: Final = frozenset({"tensorflow", *(m.partition(".")[0] for m in legacy.NAMES)})


class NotFoundError(Exception):
    """There is no such file, folder, module or distribution."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A name that is not there: `tf.x` for TensorFlow's, else as the program wrote it."""

    file: str
    line: int
    name: str
    why: str


@dataclass
class Report:
    """What was read and found."""

    files: int = 0
    uses: int = 0
    covered: int = 0
    missing: list[Finding] = field(default_factory=list)
    removed: list[Finding] = field(default_factory=list)  # by Python, NumPy and others
    outdated: list[Finding] = field(default_factory=list)  # Python 2's, or from before 1.0
    unreadable: list[Finding] = field(default_factory=list)

    @property
    def share(self) -> float:
        """The share of uses of TensorFlow that are covered; 1 where there are none."""
        return self.covered / self.uses if self.uses else 1.0

    def to_dict(self) -> dict[str, Any]:
        """The report as plain values."""

        def rows(findings: list[Finding]) -> list[dict[str, Any]]:
            return [{k: getattr(f, k) for k in Finding.__slots__} for f in findings]

        return {
            "files": self.files,
            "uses": self.uses,
            "covered": self.covered,
            "share": self.share,
            "missing": rows(self.missing),
            "removed": rows(self.removed),
            "outdated": rows(self.outdated),
            "unreadable": rows(self.unreadable),
        }


def check(target: str, put_back: Callable[[], None] = lambda: None) -> Report:
    """Reads a file, a folder, or an installed module or distribution; runs none of it.

    Args:
        target: its path or name.
        put_back: called before the first library is imported that has names of TensorFlow's, and
            after others have been asked for what they have removed.

    Raises:
        NotFoundError: there is no such thing.
    """
    report = Report()
    read = [(path, found) for path in _files(target) if (found := _read(path, report)) is not None]
    # What a program sets itself, such as a collection's key of its own, is not TensorFlow's.
    own = {_plain(use.name) for _, found in read for use in found if use.sets}
    kept = [(path, [u for u in found if own.isdisjoint(_heads(u.name))]) for path, found in read]
    for path, found in kept:
        report.removed.extend(_removed_of(path, found))
    put_back()
    for path, found in kept:
        _judge(path, found, report)
    return report


def _plain(name: str) -> str:
    return name.replace("tensorflow.compat.v1.", "tensorflow.")


def _heads(name: str) -> Iterator[str]:
    """A name, and what it is looked up in: of "tf.model.fit" also "tf.model"."""
    head = _plain(name)
    while head:
        yield head
        head = head.rpartition(".")[0]


def _read(path: Path, report: Report) -> list[Use] | None:
    """The uses in a file; None if it cannot be read."""
    try:
        tree = tree_of(path.read_bytes())
        found = reading_of(tree, _ROOTS)
        outdated = outdated_of(tree, found.calls)
    except (SyntaxError, ValueError, RecursionError, MemoryError, OSError) as e:
        line = getattr(e, "lineno", None) or 0
        hint = "; it seems to be of Python 2" if python2_syntax(e) else ""
        report.unreadable.append(Finding(str(path), line, "", f"{type(e).__name__}: {e}{hint}"))
        return None
    report.files += 1
    report.outdated.extend(Finding(str(path), o.line, o.name, o.why) for o in outdated)
    return found.uses


def _removed_of(path: Path, found: list[Use]) -> Iterator[Finding]:
    for use in found:
        if not use.name.startswith("tensorflow.") and (why := _removed(use.name)):
            yield Finding(str(path), use.line, use.name, why)


def _judge(path: Path, found: list[Use], report: Report) -> None:
    for use in found:
        root, _, name = use.name.partition(".")
        if root != "tensorflow":
            continue
        report.uses += 1
        if _covers(name):
            report.covered += 1
        else:
            report.missing.append(Finding(str(path), use.line, f"tf.{name}", _why(name)))


@functools.cache
def _covers(name: str) -> bool:
    head, _, last = name.rpartition(".")
    if last.startswith("__") and last.endswith("__"):  # Python's own: all have it
        return not head or _covers(head)
    return coverage.covers(name)


@functools.cache
def _why(name: str) -> str:
    """Why the first part of a chain that is not there is not."""
    parts = name.split(".")
    for i in range(1, len(parts) + 1):
        if not _covers(".".join(parts[:i])):
            return coverage.told(".".join(parts[:i]))
    return coverage.told(name)


@functools.cache
def _removed(name: str) -> str:
    """What stands for a name that another library has removed; empty if it still has it."""
    for module, table in legacy.NAMES.items():
        rest = name.removeprefix(f"{module}.").partition(".")[0]
        if not name.startswith(f"{module}.") or rest not in table:
            continue
        if _has(module, rest):
            return ""
        place = table[rest].replace("builtins:", "").replace(":", ".")
        own = place.startswith("opdock.legacy")
        return f"removed since 2019; `opdock run` puts {'it' if own else place} back"
    return "" if name not in legacy.MODULES else "removed since 2019; `opdock run` puts it back"


def _has(module: str, name: str) -> bool:
    """Whether the installed library has a name; one that is not installed counts as without."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what a library says of a name that it has lost
        try:
            return hasattr(importlib.import_module(module), name)
        except ImportError:
            return False


def _files(target: str) -> Iterator[Path]:
    """The Python files of a path, a module or a distribution."""
    path = Path(target)
    if path.is_file():
        yield path
        return
    if path.is_dir():
        yield from _below(path)
        return
    found = list(_installed(target))
    if not found:
        raise NotFoundError(
            f"{target!r} is no file or folder, and no module or distribution that is installed"
        )
    yield from found


def _below(folder: Path) -> Iterator[Path]:
    for root, folders, files in os.walk(folder):
        folders[:] = sorted(f for f in folders if f not in _SKIPPED and not f.startswith("."))
        yield from (Path(root, name) for name in sorted(files) if name.endswith(".py"))


def _installed(name: str) -> Iterator[Path]:
    """The files of an installed module, or of a distribution; nothing of it is imported."""
    try:
        spec = importlib.util.find_spec(name) if "." not in name else None
    except (ImportError, ValueError):
        spec = None
    if spec is not None and spec.submodule_search_locations:
        for folder in spec.submodule_search_locations:
            yield from _below(Path(folder))
        return
    if spec is not None and spec.origin is not None and spec.origin.endswith(".py"):
        yield Path(spec.origin)
        return
    try:
        listed = importlib.metadata.files(name) or []
    except importlib.metadata.PackageNotFoundError:
        return
    yield from (Path(str(f.locate())) for f in listed if f.suffix == ".py")
