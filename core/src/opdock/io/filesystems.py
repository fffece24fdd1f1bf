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
import weakref
from typing import IO, Any, Protocol

from opdock import errors

_AT_ONCE = 1 << 26
_BINARY: int = getattr(os, "O_BINARY", 0)
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]+)://")


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
    """The file system of the machine."""

    def open(self, path: str, mode: str, encoding: str | None, newline: str | None) -> IO[Any]:
        """Opens a file."""
        return open(path, mode, encoding=encoding, newline=newline)

    def read(self, path: str) -> bytes:
        """The content of a file, in as few calls as do: other threads may run at each."""
        handle = os.open(path, os.O_RDONLY | _BINARY)
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
        return os.path.exists(path)

    def isdir(self, path: str) -> bool:
        """Whether there is a directory of that name."""
        return os.path.isdir(path)

    def stat(self, path: str) -> tuple[int, int, bool]:
        """Length, time of change in nanoseconds, and whether it is a directory."""
        found = os.stat(path)
        return found.st_size, found.st_mtime_ns, os.path.isdir(path)

    def glob(self, pattern: str) -> list[str]:
        """The names that match."""
        return glob.glob(pattern)

    def listdir(self, path: str) -> list[str]:
        """The names in a directory."""
        return os.listdir(path)

    def mkdir(self, path: str) -> None:
        """Makes one directory."""
        os.mkdir(path)

    def makedirs(self, path: str) -> None:
        """Makes a directory and those above it."""
        os.makedirs(path, exist_ok=True)

    def remove(self, path: str) -> None:
        """Deletes a file."""
        os.remove(path)

    def rmdir(self, path: str) -> None:
        """Deletes a directory that has nothing in it."""
        os.rmdir(path)

    def rmtree(self, path: str) -> None:
        """Deletes a directory with all in it, or a file."""
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
    found = _SCHEME.match(path)
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
    return _SCHEME.match(path) is None


def parent(path: str) -> str:
    """The directory of a path, as `os.path.dirname` has it; that of "memory://name" is "memory://"."""
    found = os.path.dirname(path)
    scheme = _SCHEME.match(path)
    return found if scheme is None or len(found) > scheme.end() else scheme.group()


def copy(source: str, target: str) -> None:
    """Copies a file, from one file system to another if need be."""
    if is_local(source) and is_local(target):
        shutil.copyfile(source, target)
        return
    with of(source).open(source, "rb", None, None) as read:
        with of(target).open(target, "wb", None, None) as write:
            shutil.copyfileobj(read, write)


def rename(source: str, target: str) -> None:
    """Renames a file or a directory; across file systems a file only."""
    if is_local(source) and is_local(target):
        os.replace(source, target)
        return
    there = of(source)
    if isinstance(there, Remote) and target.startswith(f"{there.scheme}://"):
        there.inner.mv(there._name(source), there._name(target), recursive=there.isdir(source))
        return
    copy(source, target)
    there.remove(source)
