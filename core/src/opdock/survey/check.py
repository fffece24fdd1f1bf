"""Which of TensorFlow's names a code base uses, and which of those opdock does not have."""

from __future__ import annotations

import functools
import importlib
import importlib.metadata
import importlib.util
import os
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from opdock.legacy import has_itself, put_back
from opdock.legacy import names as legacy
from opdock.mapping import coverage, libraries
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
    names: Counter[str] = field(default_factory=Counter)  # TensorFlow's, and how often each is used
    missing: list[Finding] = field(default_factory=list)
    refused: list[Finding] = field(default_factory=list)  # there, but a call of it raises
    removed: list[Finding] = field(default_factory=list)  # by Python, NumPy and others
    outdated: list[Finding] = field(default_factory=list)  # Python 2's, or from before 1.0
    unreadable: list[Finding] = field(default_factory=list)

    @property
    def share(self) -> float:
        """The share of uses of TensorFlow that are covered; 1 where there are none."""
        return self.covered / self.uses if self.uses else 1.0

    @property
    def broken(self) -> bool:
        """Whether anything was found that has to be changed before it runs."""
        return bool(self.missing or self.refused or self.outdated or self.unreadable)

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
            "refused": rows(self.refused),
            "removed": rows(self.removed),
            "outdated": rows(self.outdated),
            "unreadable": rows(self.unreadable),
        }


def check(target: str) -> Report:
    """Reads a file, a folder, or an installed module or distribution; runs none of it.

    Libraries that have some of TensorFlow's names, such as Keras, are imported to be asked. Where
    one leans on what others have removed, that is put back in this process, as in the program's.

    Raises:
        NotFoundError: there is no such thing.
    """
    report = Report()
    read = [(path, found) for path in _files(target) if (found := _read(path, report)) is not None]
    # What a program sets itself, such as a collection's key of its own, is not TensorFlow's.
    own = {_plain(use.name) for _, found in read for use in found if use.sets}
    uses = [(path, use) for path, all_ in read for use in all_ if own.isdisjoint(_heads(use.name))]
    # What is gone is looked for before anything is put back.
    for path, use in uses:
        if not _of_tensorflow(use) and (why := _removed(use.name)):
            report.removed.append(Finding(str(path), use.line, use.name, why))
    for path, use in uses:
        if _of_tensorflow(use):
            _judge(path, use, report)
    return report


def _of_tensorflow(use: Use) -> bool:
    return use.name.partition(".")[0] == "tensorflow"


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


def _judge(path: Path, use: Use, report: Report) -> None:
    name = use.name.partition(".")[2]
    report.uses += 1
    report.names[f"tf.{name}"] += 1
    if why := _missing(name):
        report.missing.append(Finding(str(path), use.line, f"tf.{name}", why))
        return
    report.covered += 1
    if refusal := coverage.refusal(name):
        report.refused.append(Finding(str(path), use.line, f"tf.{name}", refusal))


@functools.cache
def _missing(name: str) -> str:
    """Why a name is not there; empty if it is.

    The import of a library that is asked may fail, as it would in the program: that is a finding,
    and the names of others can be judged all the same.
    """
    if not _of_a_library(name):
        try:
            return _verdict(name)
        except (ImportError, AttributeError):
            pass  # A library has it after all.
    # What a library leans on has to be there at its first import: half of it would stay.
    put_back()
    try:
        return _verdict(name)
    except (ImportError, AttributeError) as error:
        return f"what has it cannot be imported: {type(error).__name__}: {error}"


def _of_a_library(name: str) -> bool:
    library = libraries.library_of(name.removeprefix("tf.").rpartition(".")[0])
    return library is not None and libraries.installed(library)


def _verdict(name: str) -> str:
    return "" if _covers(name) else why(name)


@functools.cache
def _covers(name: str) -> bool:
    head, _, last = name.rpartition(".")
    if last.startswith("__") and last.endswith("__"):  # Python's own: all have it
        return not head or _covers(head)
    return coverage.covers(name)


@functools.cache
def why(name: str) -> str:
    """Why the first part of a chain that is not there is not; the chain without `tf.`."""
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
            return has_itself(importlib.import_module(module), name)
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
