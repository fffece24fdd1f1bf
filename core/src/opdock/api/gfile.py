"""`tf.gfile`: files of the local file system, with TF's errors."""

from __future__ import annotations

import contextlib
import glob as _glob
import os
import shutil
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import IO, Any, NamedTuple, Self

from opdock import errors
from opdock.io.files import as_path, tf_errors

__all__ = [
    "Copy", "DeleteRecursively", "Exists", "FastGFile", "GFile", "Glob", "IsDirectory",
    "ListDirectory", "MakeDirs", "MkDir", "Open", "Remove", "Rename", "Stat", "Walk",
]  # fmt: skip


class FileStatistics(NamedTuple):
    """What `Stat` returns."""

    length: int
    mtime_nsec: int
    is_directory: bool


class GFile:
    """A file; opened when it is first read or written.

    Args:
        name: the path.
        mode: "r", "w" or "a", with "b" for bytes and "+" for both ways.

    Raises:
        tf.errors.InvalidArgumentError: the mode is unknown.
    """

    def __init__(self, name: Any, mode: str = "r") -> None:
        if mode.replace("b", "").replace("+", "") not in ("r", "w", "a"):
            raise errors.InvalidArgumentError(
                None, None, f"mode is not 'r' or 'w' or 'a': {mode!r}"
            )
        self._name = as_path(name)
        self._mode = mode
        self._opened: IO[Any] | None = None

    @property
    def name(self) -> str:
        """The path."""
        return self._name

    @property
    def mode(self) -> str:
        """The mode."""
        return self._mode

    def _file(self, what: str) -> IO[Any]:
        if self._opened is None:
            text = "b" not in self._mode
            with tf_errors(self._name):
                self._opened = open(  # noqa: SIM115 - closed by close()
                    self._name,
                    self._mode,
                    encoding="utf-8" if text else None,
                    newline="" if text else None,
                )
        if (what == "read" and not self._opened.readable()) or (
            what == "write" and not self._opened.writable()
        ):
            raise errors.PermissionDeniedError(
                None, None, f"File isn't open for {'reading' if what == 'read' else 'writing'}"
            )
        return self._opened

    def read(self, n: int = -1) -> Any:
        """The next `n` bytes or characters, all that is left by default."""
        with tf_errors(self._name):
            return self._file("read").read(n)

    def readline(self) -> Any:
        """The next line with its end, empty at the end of the file."""
        with tf_errors(self._name):
            return self._file("read").readline()

    def readlines(self) -> list[Any]:
        """All lines that are left."""
        with tf_errors(self._name):
            return self._file("read").readlines()

    def write(self, file_content: Any) -> None:
        """Writes text, or bytes in binary mode."""
        file = self._file("write")
        if "b" in self._mode and isinstance(file_content, str):
            file_content = file_content.encode()
        elif "b" not in self._mode and isinstance(file_content, bytes):
            file_content = file_content.decode()
        with tf_errors(self._name):
            file.write(file_content)

    def seek(self, offset: int | None = None, whence: int = 0, position: int | None = None) -> None:
        """Goes to a place in the file; `position` is an older name of `offset`."""
        place = position if offset is None else offset
        if place is None:
            raise TypeError("seek(): offset argument required")
        file = self._file("")
        # Text files seek relative to the start only.
        if whence and "b" not in self._mode:
            place += file.tell() if whence == 1 else self.size()
            whence = 0
        with tf_errors(self._name):
            file.seek(place, whence)

    def tell(self) -> int:
        """The place in the file."""
        return self._file("").tell()

    def size(self) -> int:
        """The length in bytes."""
        if self._opened is not None and self._opened.writable():
            self._opened.flush()
        return Stat(self._name).length

    def flush(self) -> None:
        """Hands what was written to the system."""
        if self._opened is not None:
            self._opened.flush()

    def close(self) -> None:
        """Closes the file; it opens again when it is used again."""
        if self._opened is not None:
            with tf_errors(self._name):
                self._opened.close()
            self._opened = None

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            self.close()

    def __enter__(self) -> Self:
        if "r" not in self._mode:
            self._file("")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        self.close()

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        line = self.readline()
        if not line:
            raise StopIteration
        return line


FastGFile = Open = GFile


# ---------------------------------------------------------------- names
def Exists(filename: Any) -> bool:
    """Whether there is a file or directory of that name."""
    return os.path.exists(as_path(filename))


def IsDirectory(dirname: Any) -> bool:
    """Whether there is a directory of that name."""
    return os.path.isdir(as_path(dirname))


def Stat(filename: Any) -> FileStatistics:
    """Length, time of change and kind of a file; NotFoundError when there is none."""
    path = as_path(filename)
    with tf_errors(path):
        found = os.stat(path)
    return FileStatistics(found.st_size, found.st_mtime_ns, os.path.isdir(path))


def Glob(filename: Any) -> list[str]:
    """The files that match a pattern, or any of a list of patterns."""
    patterns = [filename] if isinstance(filename, (str, bytes, os.PathLike)) else list(filename)
    return [name for p in patterns for name in sorted(_glob.glob(as_path(p)))]


def ListDirectory(dirname: Any) -> list[str]:
    """The names in a directory; NotFoundError when there is none."""
    path = as_path(dirname)
    if not os.path.isdir(path):
        raise errors.NotFoundError(None, None, f"Could not find directory {path}")
    return sorted(os.listdir(path))


def Walk(top: Any, in_order: bool = True) -> Iterator[tuple[str, list[str], list[str]]]:
    """(directory, its directories, its files) for a directory and all below it.

    Args:
        top: where to start.
        in_order: a directory before those in it; otherwise after.
    """
    for directory, directories, files in os.walk(as_path(top), topdown=in_order):
        if in_order:
            directories.sort()
        yield directory, sorted(directories), sorted(files)


# ---------------------------------------------------------------- changes
def MkDir(dirname: Any) -> None:
    """Makes one directory."""
    with tf_errors(as_path(dirname)):
        os.mkdir(as_path(dirname))


def MakeDirs(dirname: Any) -> None:
    """Makes a directory and those above it; does nothing when it exists."""
    with tf_errors(as_path(dirname)):
        os.makedirs(as_path(dirname), exist_ok=True)


def Remove(filename: Any) -> None:
    """Deletes a file; NotFoundError when there is none."""
    with tf_errors(as_path(filename)):
        os.remove(as_path(filename))


def DeleteRecursively(dirname: Any) -> None:
    """Deletes a directory with all in it; NotFoundError when there is none."""
    path = as_path(dirname)
    with tf_errors(path):
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)
        else:
            os.remove(path)


def Copy(oldpath: Any, newpath: Any, overwrite: bool = False) -> None:
    """Copies a file.

    Raises:
        tf.errors.AlreadyExistsError: the new name is taken and `overwrite` is false.
        tf.errors.NotFoundError: there is no such file.
    """
    _to_new_name(oldpath, newpath, overwrite, shutil.copyfile)


def Rename(oldname: Any, newname: Any, overwrite: bool = False) -> None:
    """Renames a file or directory; raises as `Copy` does."""
    _to_new_name(oldname, newname, overwrite, os.replace)


def _to_new_name(old: Any, new: Any, overwrite: bool, act: Callable[[str, str], Any]) -> None:
    source, target = as_path(old), as_path(new)
    if not overwrite and os.path.exists(target):
        raise errors.AlreadyExistsError(None, None, f"file already exists: {target}")
    with tf_errors(source):
        act(source, target)
