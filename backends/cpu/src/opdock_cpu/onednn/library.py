"""Finds oneDNN: in the environment, in its wheel, in the interpreter's prefix, on the system."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from opdock.plugin import installed_files
from opdock_cpu.threads import short_waits

__all__ = ["Library", "find", "notes", "reason"]

_WHEELS: Final = ("onednn-cpu-gomp", "onednn-cpu-iomp")
_NAMES: Final = {
    "darwin": ("libdnnl.3.dylib", "libdnnl.dylib"),
    "win32": ("dnnl.dll",),
}
_LINUX: Final = ("libdnnl.so.3", "libdnnl.so")
_OFF: Final = frozenset({"off", "0", "no", "none"})
_RUNTIMES: Final = {1: "sequential", 2: "OpenMP", 4: "TBB"}
_HINT: Final = 'pip install "opdock-cpu[onednn]"'


@dataclass(frozen=True, eq=False)
class Library:
    """A oneDNN that can be used.

    Attributes:
        ffi, lib: cffi's view of it.
        version: (major, minor, patch).
        runtime: "OpenMP", "TBB" or "sequential".
        path: what was loaded.
    """

    ffi: Any
    lib: Any
    version: tuple[int, int, int]
    runtime: str
    path: str

    def __str__(self) -> str:
        return f"oneDNN {'.'.join(map(str, self.version))} ({self.runtime}, {self.path})"


@functools.cache
def find() -> Library | str:
    """The first oneDNN 3 that loads, or why there is none. Looks once a process."""
    wanted = os.environ.get("OPDOCK_ONEDNN", "")
    if wanted.lower() in _OFF:
        return f"oneDNN is switched off (OPDOCK_ONEDNN={wanted})"
    try:
        from opdock_cpu.onednn._interface import ffi
    except ImportError:
        return f"oneDNN is reached through cffi, which is not installed: {_HINT}"
    reasons = []
    for path in [wanted] if wanted else _candidates():
        found = _load(ffi, path)
        if isinstance(found, Library):
            return found
        reasons.append(found)
    # A library that is there and does not load tells more than one that is not.
    return next((r for r in reasons if "cannot open shared object" not in r), None) or (
        reasons[0] if wanted else f"oneDNN 3 is not installed: {_HINT}"
    )


def reason() -> str:
    """Why there is no oneDNN; empty when there is one."""
    found = find()
    return found if isinstance(found, str) else ""


def notes() -> list[str]:
    """What `opdock doctor` prints: which oneDNN is in use, or why NumPy serves alone."""
    found = find()
    if isinstance(found, str):
        return [f"NumPy kernels only: {found}"]
    return [f"convolutions, products and the like through {found}"]


def _candidates() -> Iterator[str]:
    names = _NAMES.get(sys.platform, _LINUX)
    for wheel in _WHEELS:
        yield from _in_wheel(wheel, names)
    for folder in ("lib", "Library/bin"):
        for name in names:
            path = Path(sys.prefix, folder, name)
            if path.exists():
                yield str(path)
    yield names[0]


def _in_wheel(wheel: str, names: tuple[str, ...]) -> Iterator[str]:
    by_name = {os.path.basename(path): path for path in installed_files(wheel)}
    for name in names:
        if name in by_name:
            yield os.path.realpath(by_name[name])
            return


# When the interpreter ends, threads of the library may still be waiting in its code for work.
_MODE: Final = getattr(os, "RTLD_NOW", 0) | getattr(os, "RTLD_NODELETE", 0)


def _load(ffi: Any, path: str) -> Library | str:
    try:
        with short_waits():
            lib = ffi.dlopen(path, _MODE)
    except OSError as e:
        text = str(e).partition(".  Additionally")[0].removeprefix("cannot load library ")
        if "gomp" in text.partition(":")[2]:
            text += "; install GNU's OpenMP runtime, for instance: apt install libgomp1"
        return f"oneDNN does not load: {text}"
    try:
        told = lib.dnnl_version()
    except (AttributeError, ffi.error):
        return f"{path} is not oneDNN: it has no dnnl_version"
    version = (told.major, told.minor, told.patch)
    if version[0] != 3:
        return f"{path} is oneDNN {'.'.join(map(str, version))}; opdock needs version 3"
    runtime = _RUNTIMES.get(told.cpu)
    if runtime is None:
        return f"{path} is built for a threading runtime that opdock does not drive ({told.cpu})"
    return Library(ffi, lib, version, runtime, path)
