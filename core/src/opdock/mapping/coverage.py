"""What of TensorFlow 1.15's public interface opdock has: as data, for the page and for commands."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Literal, NoReturn

from opdock.mapping import left_out, libraries, names, op_gaps, removed, resolve

Status = Literal["there", "library", "planned", "out"]


@dataclass(frozen=True, slots=True)
class Entry:
    """One public name: its path without `tf.`, what it is, and whether opdock has it.

    "library" is said of names that are looked up in a library, installed or not: the entries are
    the same in every environment. The note is the library, the reason why a name is not meant to
    come, or of a planned one what it is for, where that is known.
    """

    path: str
    kind: names.Kind
    status: Status
    note: str = ""


def status_of(path: str) -> Entry | None:
    """The entry of a public path of TF 1.15's, or None where it has no such name."""
    module, _, name = path.rpartition(".")
    kind = names.table().public.get(module, {}).get(name)
    if kind is None:
        return None
    if resolve.without_libraries(path) is not resolve.MISSING:
        return Entry(path, kind, "there")
    if kind == "module" and _any_below(path):
        return Entry(path, kind, "there")
    if (why_not := left_out.reason(path)) is not None:
        return Entry(path, kind, "out", why_not)
    if (library := libraries.library_of(path)) is not None:
        return Entry(path, kind, "library", library.distribution)
    gap = op_gaps.gap_of(name) if module == "raw_ops" else None
    if gap is None:
        return Entry(path, kind, "planned")
    return Entry(path, kind, "out" if gap.out else "planned", gap.why)


def _any_below(path: str) -> bool:
    below = names.table().public.get(path, {})
    return any(resolve.without_libraries(f"{path}.{name}") is not resolve.MISSING for name in below)


@functools.cache
def entries() -> tuple[Entry, ...]:
    """Every public name of TF 1.15's, by path."""
    found = []
    for module, members in names.table().public.items():
        for name in members:
            entry = status_of(f"{module}.{name}".lstrip("."))
            if entry is not None:
                found.append(entry)
    return tuple(sorted(found, key=lambda e: e.path))


def op_of(path: str) -> str | None:
    """The type of the op that a public function is named after, as far as opdock has it."""
    module, _, name = path.rpartition(".")
    if status_of(path) is None or module.startswith("keras"):
        return None
    return resolve.op_type(name)


def covers(path: str) -> bool:
    """Whether a name below `tensorflow.`, public or internal, is there; members of classes too."""
    found: object = resolve.ModulePath("")
    for i, part in enumerate(parts := path.split(".")):
        if isinstance(found, resolve.ModulePath):
            found = resolve.lookup(found.path, part)
            if found is resolve.MISSING:
                return False
        else:
            return _has(found, parts[i:])
    return True


def _has(value: object, rest: list[str]) -> bool:
    """Whether a class has these attributes; what instances get is believed.

    Instances are not asked: reading a flag, for one, parses the command line.
    """
    for part in rest:
        if not isinstance(value, type):
            return True
        if not hasattr(value, part):
            return part in getattr(value, "__slots__", ())
        value = getattr(value, part)
    return True


def refusal(path: str) -> str | None:
    """What a call of what stands at a path raises, if it always does; else None.

    Such a function says so with its annotation, and in the first line of its docstring why.
    """
    found: object = resolve.ModulePath("")
    for part in path.split("."):
        if not isinstance(found, resolve.ModulePath):
            return None  # a member of a class
        found = resolve.lookup(found.path, part)
    if getattr(found, "__annotations__", {}).get("return") not in ("NoReturn", NoReturn):
        return None
    first, _, _ = (found.__doc__ or "Raises").partition("\n")
    return first[0].lower() + first[1:].rstrip(".")


def told(path: str) -> str:
    """What is said of a name that is not there."""
    from opdock.mapping import missing

    module, _, name = path.rpartition(".")
    return removed.advice(path) or missing.why(resolve.plain(module), name)
