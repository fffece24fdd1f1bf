"""Where a path leads: the local file system, or by its scheme one that fsspec knows.

A path with a scheme, such as "s3://bucket/name" or "memory://name", needs the package fsspec, and
fsspec the package of the scheme; both are imported when such a path is first used. As fsspec writes
them, a file within a file has the path of both: "zip://name::/data/archive.zip".
"""

from __future__ import annotations

import glob
import importlib
import os
import re
import shutil
import stat
import weakref
from contextlib import suppress
from typing import IO, Any, BinaryIO, Final, Protocol

from opdock import errors

_AT_ONCE = 1 << 26
_BINARY: int = getattr(os, "O_BINARY", 0)
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]+)://")


_FILE: Final = "file://"


def here(path: str) -> str:
    """A path of the machine's own file system without the scheme "file"."""
    return path.removeprefix(_FILE)


class FileSystem(Protocol):
    """What is done with paths; failures are OSErrors."""

    def open(self, path: str, mode: str, encoding: str | None, newline: str | None) -> IO[Any]:
        """Opens a file."""

    def read(self, path: str) -> bytes:
        """The content of a file."""

    def exists(self, path: str) -> bool:
        """Whether there is anything of that name."""

    def isdir(self, path: str) -> bool:
        """Whether there is a directory of that name."""

    def stat(self, path: str) -> tuple[int, int, bool]:
        """Length, time of change in nanoseconds, and whether it is a directory."""

    def glob(self, pattern: str) -> list[str]:
        """The names that match."""

    def listdir(self, path: str) -> list[str]:
        """The names in a directory, without its own."""

    def mkdir(self, path: str) -> None:
        """Makes one directory."""

    def makedirs(self, path: str) -> None:
        """Makes a directory and those above it, as far as they are missing."""

    def remove(self, path: str) -> None:
        """Deletes a file."""

    def rmdir(self, path: str) -> None:
        """Deletes a directory that has nothing in it."""

    def rmtree(self, path: str) -> None:
        """Deletes a directory with all in it, or a file."""


class Local:
    """The file system of the machine; its paths may have the scheme "file"."""

    def open(self, path: str, mode: str, encoding: str | None, newline: str | None) -> IO[Any]:
        """Opens a file."""
        return open(here(path), mode, encoding=encoding, newline=newline)

    def read(self, path: str) -> bytes:
        """The content of a file, in as few calls as do: other threads may run at each."""
        handle = os.open(here(path), os.O_RDONLY | _BINARY)
        try:
            size = os.fstat(handle).st_size
            found = os.read(handle, min(size, _AT_ONCE) + 1)
            if len(found) == size:
                return found
            parts = [found]
            while parts[-1]:
                parts.append(os.read(handle, _AT_ONCE))
            return b"".join(parts)
        finally:
            os.close(handle)

    def exists(self, path: str) -> bool:
        """Whether there is anything of that name."""
        return os.path.exists(here(path))

    def isdir(self, path: str) -> bool:
        """Whether there is a directory of that name."""
        return os.path.isdir(here(path))

    def stat(self, path: str) -> tuple[int, int, bool]:
        """Length, time of change in nanoseconds, and whether it is a directory."""
        found = os.stat(here(path))
        return found.st_size, found.st_mtime_ns, stat.S_ISDIR(found.st_mode)

    def glob(self, pattern: str) -> list[str]:
        """The names that match."""
        found = glob.glob(here(pattern))
        return [f"{_FILE}{name}" for name in found] if pattern.startswith(_FILE) else found

    def listdir(self, path: str) -> list[str]:
        """The names in a directory."""
        return os.listdir(here(path))

    def mkdir(self, path: str) -> None:
        """Makes one directory."""
        os.mkdir(here(path))

    def makedirs(self, path: str) -> None:
        """Makes a directory and those above it; the name "" is the current one, which is there."""
        if name := here(path):
            os.makedirs(name, exist_ok=True)

    def remove(self, path: str) -> None:
        """Deletes a file."""
        os.remove(here(path))

    def rmdir(self, path: str) -> None:
        """Deletes a directory that has nothing in it."""
        os.rmdir(here(path))

    def rmtree(self, path: str) -> None:
        """Deletes a directory with all in it, or a file."""
        path = here(path)
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)
        else:
            os.remove(path)


class Remote:
    """A file system of fsspec's.

    Args:
        scheme: what its paths begin with.
        inner: fsspec's object.
        within: what its paths end with: "::" and the path of the file that holds it, or nothing.
    """

    def __init__(self, scheme: str, inner: Any, within: str = "") -> None:
        self.scheme, self.inner, self.within = scheme, inner, within

    def _full(self, name: str) -> str:
        return name if "://" in name else f"{self.scheme}://{name.lstrip('/')}{self.within}"

    def _name(self, path: str) -> str:
        """The path as the file system itself has it."""
        return str(self.inner._strip_protocol(path.removesuffix(self.within)))

    def open(self, path: str, mode: str, encoding: str | None, newline: str | None) -> IO[Any]:
        """Opens a file."""
        extra = {} if encoding is None else {"encoding": encoding, "newline": newline}
        file: IO[Any] = self.inner.open(self._name(path), mode, **extra)
        # An archive is closed with the object for it, which has to last as long as the file.
        weakref.finalize(file, id, self.inner)
        return file

    def read(self, path: str) -> bytes:
        """The content of a file."""
        with self.open(path, "rb", None, None) as file:
            data: bytes = file.read()
        return data

    def exists(self, path: str) -> bool:
        """Whether there is anything of that name."""
        return bool(self.inner.exists(self._name(path)))

    def isdir(self, path: str) -> bool:
        """Whether there is a directory of that name."""
        return bool(self.inner.isdir(self._name(path)))

    def stat(self, path: str) -> tuple[int, int, bool]:
        """Length, time of change in nanoseconds (0 if it has none), and whether a directory."""
        found = self.inner.info(self._name(path))
        try:
            changed = int(self.inner.modified(self._name(path)).timestamp() * 1e9)
        except (NotImplementedError, AttributeError, KeyError):
            changed = 0
        return int(found.get("size") or 0), changed, found.get("type") == "directory"

    def glob(self, pattern: str) -> list[str]:
        """The names that match."""
        return [self._full(name) for name in self.inner.glob(self._name(pattern))]

    def listdir(self, path: str) -> list[str]:
        """The names in a directory."""
        found = self.inner.ls(self._name(path), detail=False)
        return [name.rstrip("/").rpartition("/")[2] for name in found]

    def mkdir(self, path: str) -> None:
        """Makes one directory."""
        self.inner.mkdir(self._name(path), create_parents=False)

    def makedirs(self, path: str) -> None:
        """Makes a directory and those above it."""
        self.inner.makedirs(self._name(path), exist_ok=True)

    def remove(self, path: str) -> None:
        """Deletes a file."""
        self.inner.rm_file(self._name(path))

    def rmdir(self, path: str) -> None:
        """Deletes a directory that has nothing in it."""
        self.inner.rmdir(self._name(path))

    def rmtree(self, path: str) -> None:
        """Deletes a directory with all in it, or a file."""
        self.inner.rm(self._name(path), recursive=True)


_LOCAL = Local()


def of(path: str) -> FileSystem:
    """The file system of a path.

    Raises:
        UnimplementedError: its scheme needs a package that is not installed, or nobody knows it.
    """
    found = _SCHEME.match(here(path))
    if found is None:
        return _LOCAL
    scheme = found.group(1)
    try:
        core: Any = importlib.import_module("fsspec.core")
        within = "".join(path.partition("::")[1:])
        return Remote(scheme, core.url_to_fs(path)[0], within)
    except ImportError as e:
        hint = "pip install fsspec" if (e.name or "").startswith("fsspec") else str(e)
        raise errors.UnimplementedError(
            None, None, f"File system scheme '{scheme}' not implemented (file: '{path}'): {hint}"
        ) from None
    except ValueError as e:
        raise errors.UnimplementedError(
            None, None, f"File system scheme '{scheme}' not implemented (file: '{path}'): {e}"
        ) from None


def is_local(path: str) -> bool:
    """Whether a path is one of the machine's own file system."""
    return _SCHEME.match(here(path)) is None


def is_absolute(path: str) -> bool:
    """Whether a path means the same wherever a program stands."""
    return _SCHEME.match(path) is not None or os.path.isabs(path)


def parent(path: str) -> str:
    """The directory that has a file or directory; "" for the one where the program stands."""
    found = _SCHEME.match(path)
    root = "" if found is None else found.group(0)
    return root + os.path.dirname(path[len(root) :])


def exists(path: str) -> bool:
    """Whether there is anything of that name."""
    return of(path).exists(path)


def isdir(path: str) -> bool:
    """Whether there is a directory of that name."""
    return of(path).isdir(path)


def isfile(path: str) -> bool:
    """Whether there is something of that name, and it is no directory."""
    there = of(path)
    return there.exists(path) and not there.isdir(path)


def matching(pattern: str) -> list[str]:
    """The names that match a pattern, or the one that there is by that name."""
    there = of(pattern)
    return [pattern] if there.exists(pattern) else there.glob(pattern)


def open_bytes(path: str) -> BinaryIO:
    """A file's bytes, to be read."""
    file: Any = of(path).open(path, "rb", None, None)
    found: BinaryIO = file
    return found


def read_ahead(file: BinaryIO) -> None:
    """Tells the system that a file is read from its beginning on, so that it fetches more of it
    while what came is looked at. A file that is not the machine's has no such way.
    """
    if hasattr(os, "posix_fadvise"):
        with suppress(OSError):
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_SEQUENTIAL)


def copy(source: str, target: str) -> None:
    """Copies a file, from one file system to another if need be."""
    if is_local(source) and is_local(target):
        shutil.copyfile(here(source), here(target))
        return
    with of(source).open(source, "rb", None, None) as read:
        with of(target).open(target, "wb", None, None) as write:
            shutil.copyfileobj(read, write)


def rename(source: str, target: str) -> None:
    """Renames a file or a directory; across file systems a file only."""
    if is_local(source) and is_local(target):
        os.replace(here(source), here(target))
        return
    there = of(source)
    if isinstance(there, Remote) and target.startswith(f"{there.scheme}://"):
        there.inner.mv(there._name(source), there._name(target), recursive=there.isdir(source))
        return
    copy(source, target)
    there.remove(source)
