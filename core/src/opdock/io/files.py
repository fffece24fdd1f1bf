"""File access shared by readers and writers: atomic replacement, and TF's errors for the OS's."""

from __future__ import annotations

import errno
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO

from opdock import errors
from opdock.io import filesystems

_BY_ERRNO: dict[int, type[errors.OpError]] = {
    errno.ENOENT: errors.NotFoundError,
    errno.EEXIST: errors.AlreadyExistsError,
    errno.EACCES: errors.PermissionDeniedError,
    errno.EPERM: errors.PermissionDeniedError,
    errno.EROFS: errors.PermissionDeniedError,
    errno.ENOSPC: errors.ResourceExhaustedError,
    errno.EDQUOT: errors.ResourceExhaustedError,
    errno.EMFILE: errors.ResourceExhaustedError,
    errno.ENOMEM: errors.ResourceExhaustedError,
    errno.EISDIR: errors.FailedPreconditionError,
    errno.ENOTDIR: errors.FailedPreconditionError,
    errno.ENOTEMPTY: errors.FailedPreconditionError,
    errno.EBUSY: errors.UnavailableError,
}


# File systems that are not the machine's raise these without a number.
_NUMBERS: dict[type[OSError], int] = {
    FileNotFoundError: errno.ENOENT,
    FileExistsError: errno.EEXIST,
    PermissionError: errno.EACCES,
    IsADirectoryError: errno.EISDIR,
    NotADirectoryError: errno.ENOTDIR,
}


def error_from_os(error: OSError, path: str | None = None) -> errors.OpError:
    """The TF error for an OSError, worded `<path>; <reason>` as TF words it."""
    number = error.errno or _NUMBERS.get(type(error), 0)
    cls = _BY_ERRNO.get(number, errors.UnknownError)
    name = path if path is not None else error.filename
    reason = error.strerror or (os.strerror(number) if number else str(error))
    return cls(None, None, f"{name}; {reason}")


@contextmanager
def tf_errors(path: str | None = None) -> Iterator[None]:
    """Turns an OSError raised inside into TF's error of the same meaning."""
    try:
        yield
    except OSError as e:
        raise error_from_os(e, path) from e


def as_path(path: str | bytes | os.PathLike[str]) -> str:
    """A path as str, from str, UTF-8 bytes or a path object."""
    return path.decode() if isinstance(path, bytes) else os.fspath(path)


@contextmanager
def atomic_write(path: str) -> Iterator[BinaryIO]:
    """Opens a temporary file beside `path` that takes its place when the block ends well.

    A reader sees the old content or all of the new one; after a crash the name never holds half a
    file. An exception in the block removes the temporary file and leaves `path` alone.
    """
    temporary = f"{path}.tempstate{uuid.uuid4().hex}"
    with tf_errors(path):
        file = open(temporary, "xb")  # noqa: SIM115
        try:
            yield file
            file.flush()
            os.fsync(file.fileno())
            file.close()
            os.replace(temporary, path)
        except BaseException:
            file.close()
            with suppress(OSError):
                os.unlink(temporary)
            raise
    sync_directory(os.path.dirname(path) or ".")


def sync_directory(path: str) -> None:
    """Makes renames inside a directory durable, on systems that can."""
    with suppress(OSError):
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def write_file(path: str, data: bytes) -> None:
    """Writes a whole file, atomically where the file system is the machine's."""
    if not filesystems.is_local(path):
        with tf_errors(path), filesystems.of(path).open(path, "wb", None, None) as remote:
            remote.write(data)
        return
    with atomic_write(path) as f:
        f.write(data)


def read_file(path: str) -> bytes:
    """The bytes of a file; NotFoundError and its kin instead of OSError."""
    with tf_errors(path), filesystems.of(path).open(path, "rb", None, None) as f:
        data: bytes = f.read()
    return data
