"""`tf.gfile`: files of the local file system and, through fsspec, of others, with TF's errors."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import IO, Any, NamedTuple, Self

from opdock import errors
from opdock.compat import as_bytes
from opdock.failures import failures
from opdock.io import filesystems
from opdock.io.files import as_path, tf_errors
from opdock.util.interrupts import finalizer

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
        name: the path, or a URL such as "s3://bucket/name" where fsspec is installed.
        mode: "r", "w" or "a", with "b" for bytes and "+" for both ways.

    Raises:
        tf.errors.InvalidArgumentError: the mode is unknown.
    """

    def __init__(self, name: Any, mode: str = "r") -> None:
        if mode.replace("b", "") not in ("r", "w", "a", "r+", "w+", "a+"):
            raise errors.InvalidArgumentError(
                None, None, "mode is not 'r' or 'w' or 'a' or 'r+' or 'w+' or 'a+'"
            )
        self._name = name
        self._path = as_path(name)
        self._mode = mode
        # As in TF a file that is read and written has a place of its own for each.
        self._reader: IO[Any] | None = None
        self._writer: IO[Any] | None = None

    @property
    def name(self) -> Any:
        """The path."""
        return self._name

    @property
    def mode(self) -> str:
        """The mode."""
        return self._mode

    def _open(self, mode: str, text: bool) -> IO[Any]:
        with tf_errors(self._path):
            return filesystems.of(self._path).open(
                self._path,
                mode if text else f"{mode}b",
                encoding="utf-8" if text else None,
                newline="" if text else None,
            )

    def _reading(self) -> IO[Any]:
        if self._mode.replace("b", "") in ("w", "a"):
            raise errors.PermissionDeniedError(None, None, "File isn't open for reading")
        self.flush()
        if self._reader is None:
            self._reader = self._open("r", text="b" not in self._mode)
        return self._reader

    def _writing(self) -> IO[Any]:
        if self._mode.replace("b", "") == "r":
            raise errors.PermissionDeniedError(None, None, "File isn't open for writing")
        if self._writer is None:
            self._writer = self._open("a" if "a" in self._mode else "w", text=False)
        return self._writer

    def read(self, n: int = -1) -> Any:
        """The next `n` bytes or characters, all that is left by default."""
        with tf_errors(self._path):
            return self._reading().read(n)

    def readline(self) -> Any:
        """The next line with its end, empty at the end of the file."""
        with tf_errors(self._path):
            return self._reading().readline()

    def readlines(self) -> list[Any]:
        """All lines that are left."""
        with tf_errors(self._path):
            return self._reading().readlines()

    def write(self, file_content: Any) -> None:
        """Writes text as UTF-8, and bytes as they are, in every mode."""
        file = self._writing()
        with tf_errors(self._path):
            file.write(as_bytes(file_content))

    def seek(self, offset: int | None = None, whence: int = 0, position: int | None = None) -> None:
        """Goes to a place in the file; `position` is an older name of `offset`."""
        if offset is not None and position is not None:
            raise TypeError("seek(): offset and position may not be set simultaneously.")
        place = position if offset is None else offset
        if place is None:
            raise TypeError("seek(): offset argument required")
        if whence not in (0, 1, 2):
            raise errors.InvalidArgumentError(
                None, None, f"Invalid whence argument: {whence}. Valid values are 0, 1, or 2."
            )
        file = self._reading()
        # Text files seek relative to the start only.
        if whence:
            place += file.tell() if whence == 1 else self.size()
        if place < 0:
            raise errors.InvalidArgumentError(
                None, None, f"{self._path}: can't seek to position {place}"
            )
        if place > self.size():
            raise errors.OutOfRangeError(None, None, "EOF reached")
        with tf_errors(self._path):
            file.seek(place)

    def tell(self) -> int:
        """The place in the file."""
        only_written = self._mode.replace("b", "") in ("w", "a")
        return (self._writing() if only_written else self._reading()).tell()

    def size(self) -> int:
        """The length in bytes."""
        self.flush()
        return Stat(self._path).length

    def flush(self) -> None:
        """Hands what was written to the system."""
        if self._writer is not None:
            with tf_errors(self._path):
                self._writer.flush()

    def close(self) -> None:
        """Closes the file; it opens again when it is used again."""
        with tf_errors(self._path):
            for file in (self._reader, self._writer):
                if file is not None:
                    file.close()
        self._reader = self._writer = None

    def seekable(self) -> bool:
        """True: every file can be read from any place."""
        return True

    @finalizer
    def __del__(self) -> None:
        try:
            self.close()
        except failures(Exception):
            pass

    def __enter__(self) -> Self:
        if "r" not in self._mode:
            self._writing()
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

    next = __next__


FastGFile = Open = GFile


# ---------------------------------------------------------------- names
def Exists(filename: Any) -> bool:
    """Whether there is a file or directory of that name.

    Args:
        filename: the path of the file or directory.
    """
    path = as_path(filename)
    with tf_errors(path):
        return filesystems.of(path).exists(path)


def IsDirectory(dirname: Any) -> bool:
    """Whether there is a directory of that name.

    Args:
        dirname: the path of the file or directory.
    """
    path = as_path(dirname)
    with tf_errors(path):
        return filesystems.of(path).isdir(path)


def Stat(filename: Any) -> FileStatistics:
    """Length, time of change and kind of a file; NotFoundError when there is none.

    Args:
        filename: the path of the file or directory.
    """
    path = as_path(filename)
    with tf_errors(path):
        return FileStatistics(*filesystems.of(path).stat(path))


def Glob(filename: Any) -> list[str]:
    """The files that match a pattern, or any of a list of patterns.

    Args:
        filename: a pattern, or a list of patterns.
    """
    several = not isinstance(filename, (str, bytes, os.PathLike))
    found = []
    for pattern in map(as_path, filename if several else [filename]):
        with tf_errors(pattern):
            found += sorted(filesystems.of(pattern).glob(pattern))
    return found


def ListDirectory(dirname: Any) -> list[str]:
    """The names in a directory; NotFoundError when there is none.

    Args:
        dirname: the path of the file or directory.
    """
    path = as_path(dirname)
    if not IsDirectory(path):
        raise errors.NotFoundError(None, None, f"Could not find directory {path}")
    with tf_errors(path):
        return sorted(filesystems.of(path).listdir(path))


def Walk(top: Any, in_order: bool = True) -> Iterator[tuple[str, list[str], list[str]]]:
    """(directory, its directories, its files) for a directory and all below it.

    Args:
        top: where to start.
        in_order: a directory before those in it; otherwise after.
    """
    return walk_with(as_path(top), in_order, None)


def walk_with(
    path: str, in_order: bool, onerror: Callable[[Exception], Any] | None
) -> Iterator[tuple[str, list[str], list[str]]]:
    """`Walk`; `onerror` is called with the error when there is no such directory."""
    try:
        names = ListDirectory(path)
    except errors.NotFoundError as e:
        if onerror is None:
            return
        onerror(e)
        names = []
    below = [name for name in names if IsDirectory(os.path.join(path, name))]
    here = (path, below, [name for name in names if name not in set(below)])
    if in_order:
        yield here
    for name in list(below):
        yield from walk_with(os.path.join(path, name), in_order, onerror)
    if not in_order:
        yield here


# ---------------------------------------------------------------- changes
def MkDir(dirname: Any) -> None:
    """Makes one directory; does nothing when there is something of that name, as in TensorFlow.

    Args:
        dirname: the path of the file or directory.
    """
    path = as_path(dirname)
    with tf_errors(path), contextlib.suppress(FileExistsError):
        filesystems.of(path).mkdir(path)


def MakeDirs(dirname: Any) -> None:
    """Makes a directory and those above it; does nothing when it exists.

    Args:
        dirname: the path of the file or directory.

    Raises:
        tf.errors.FailedPreconditionError: there is a file of that name, or of one above it.
    """
    path = as_path(dirname)
    with tf_errors(path):
        try:
            filesystems.of(path).makedirs(path)
        except FileExistsError:
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path) from None


def Remove(filename: Any) -> None:
    """Deletes a file; NotFoundError when there is none.

    Args:
        filename: the path of the file or directory.
    """
    path = as_path(filename)
    with tf_errors(path):
        filesystems.of(path).remove(path)


def DeleteRecursively(dirname: Any) -> None:
    """Deletes a directory with all in it; NotFoundError when there is none.

    Args:
        dirname: the path of the file or directory.
    """
    path = as_path(dirname)
    with tf_errors(path):
        filesystems.of(path).rmtree(path)


def Copy(oldpath: Any, newpath: Any, overwrite: bool = False) -> None:
    """Copies a file.

    Args:
        oldpath: the file.
        newpath: where the copy goes.
        overwrite: whether a file there may be replaced.

    Raises:
        tf.errors.AlreadyExistsError: the new name is taken and `overwrite` is false.
        tf.errors.NotFoundError: there is no such file, or no folder to copy it to.
        tf.errors.FailedPreconditionError: the old name is a directory's.
    """
    source, target = _names(oldpath, newpath, overwrite)
    if IsDirectory(source):
        raise errors.FailedPreconditionError(None, None, f"{source} is a directory.")
    with tf_errors(target if Exists(source) else source):
        filesystems.copy(source, target)


def Rename(oldname: Any, newname: Any, overwrite: bool = False) -> None:
    """Renames a file or directory; raises as `Copy` does.

    Args:
        oldname: the path as it is.
        newname: the path that it gets.
        overwrite: whether a file there may be replaced.
    """
    source, target = _names(oldname, newname, overwrite)
    with tf_errors(source):
        filesystems.rename(source, target)


def _names(old: Any, new: Any, overwrite: bool) -> tuple[str, str]:
    source, target = as_path(old), as_path(new)
    if not overwrite and Exists(target):
        raise errors.AlreadyExistsError(None, None, f"file already exists: {target}")
    return source, target
