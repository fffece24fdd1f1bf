"""`tf.io.gfile`: the functions of `tf.gfile` under newer names, with newer names of arguments."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from opdock.api import gfile
from opdock.api.gfile import FileStatistics, GFile
from opdock.io.files import as_path

__all__ = [
    "GFile", "copy", "exists", "glob", "isdir", "listdir", "makedirs", "mkdir", "remove", "rename",
    "rmtree", "stat", "walk",
]  # fmt: skip


def copy(src: Any, dst: Any, overwrite: bool = False) -> None:
    """Copies a file; see `tf.gfile.Copy`.

    Args:
        src: the file.
        dst: where the copy goes.
        overwrite: whether a file there may be replaced.
    """
    gfile.Copy(src, dst, overwrite)


def exists(path: Any) -> bool:
    """Whether there is a file or directory of that name.

    Args:
        path: the path of the file or directory.
    """
    return gfile.Exists(path)


def glob(pattern: Any) -> list[str]:
    """The files that match a pattern, or any of a list of patterns."""
    return gfile.Glob(pattern)


def isdir(path: Any) -> bool:
    """Whether there is a directory of that name.

    Args:
        path: the path of the file or directory.
    """
    return gfile.IsDirectory(path)


def listdir(path: Any) -> list[str]:
    """The names in a directory; NotFoundError when there is none.

    Args:
        path: the path of the file or directory.
    """
    return gfile.ListDirectory(path)


def makedirs(path: Any) -> None:
    """Makes a directory and those above it; does nothing when it exists.

    Args:
        path: the path of the file or directory.
    """
    gfile.MakeDirs(path)


def mkdir(path: Any) -> None:
    """Makes one directory.

    Args:
        path: the path of the file or directory.
    """
    gfile.MkDir(path)


def remove(path: Any) -> None:
    """Deletes a file; NotFoundError when there is none.

    Args:
        path: the path of the file or directory.
    """
    gfile.Remove(path)


def rename(src: Any, dst: Any, overwrite: bool = False) -> None:
    """Renames a file or directory; see `tf.gfile.Copy`.

    Args:
        src: the path as it is.
        dst: the path that it gets.
        overwrite: whether a file there may be replaced.
    """
    gfile.Rename(src, dst, overwrite)


def rmtree(path: Any) -> None:
    """Deletes a directory with all in it; NotFoundError when there is none.

    Args:
        path: the path of the file or directory.
    """
    gfile.DeleteRecursively(path)


def stat(path: Any) -> FileStatistics:
    """Length, time of change and kind of a file; NotFoundError when there is none.

    Args:
        path: the path of the file or directory.
    """
    return gfile.Stat(path)


def walk(
    top: Any, topdown: bool = True, onerror: Callable[[Exception], Any] | None = None
) -> Iterator[tuple[str, list[str], list[str]]]:
    """(directory, its directories, its files) for a directory and all below it.

    Args:
        top: where to start.
        topdown: a directory before those in it; otherwise after.
        onerror: called with the error when there is no such directory.
    """
    return gfile.walk_with(as_path(top), topdown, onerror)
