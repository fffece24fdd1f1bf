"""File access shared by readers and writers: atomic replacement, and TF's errors for the OS's."""

from __future__ import annotations

import ctypes
import errno
import io
import os
import re
import shutil
import sys
import tempfile
import time
import uuid
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, BinaryIO, Final

from opdock import errors
from opdock.io import filesystems
from opdock.util.interrupts import finalizer

if sys.platform != "win32":
    import fcntl

_TEMPORARY = re.compile(r"\.tempstate[0-9a-f]{32}$")
# A system's numbers by TF's errors for them; not every system has all. EIO and others are Unknown.
_NAMES: dict[type[errors.OpError], str] = {
    errors.InvalidArgumentError: "EINVAL ENAMETOOLONG E2BIG EDOM EFAULT EILSEQ ENOTTY ESPIPE",
    errors.DeadlineExceededError: "ETIMEDOUT ETIME",
    errors.NotFoundError: "ENODEV ENOENT ENXIO ESRCH",
    errors.AlreadyExistsError: "EEXIST EADDRNOTAVAIL EALREADY",
    errors.PermissionDeniedError: "EPERM EACCES EROFS",
    errors.FailedPreconditionError: (
        "ENOTEMPTY EISDIR ENOTDIR EADDRINUSE EBADF EBUSY ECHILD EISCONN ENOTBLK ENOTCONN EPIPE "
        "ESHUTDOWN ETXTBSY"
    ),
    errors.ResourceExhaustedError: (
        "ENOSPC EDQUOT EMFILE EMLINK ENFILE ENOBUFS ENODATA ENOMEM ENOSR EUSERS "
        # TF's OutOfRange is to monitored sessions the end of the input: they would end without a
        # word, and without a checkpoint.
        "EFBIG"
    ),
    errors.OutOfRangeError: "EOVERFLOW ERANGE",
    errors.UnimplementedError: "ENOSYS ENOTSUP EPROTONOSUPPORT EXDEV",
    errors.UnavailableError: (
        "EAGAIN ECONNREFUSED ECONNABORTED ECONNRESET EINTR EHOSTDOWN EHOSTUNREACH ENETDOWN "
        "ENETRESET ENETUNREACH ENOLCK ENOLINK ENONET"
    ),
    errors.AbortedError: "EDEADLK ESTALE",
    errors.CancelledError: "ECANCELED",
}
_BY_ERRNO: dict[int, type[errors.OpError]] = {
    getattr(errno, name): kind
    for kind, names in _NAMES.items()
    for name in names.split()
    if hasattr(errno, name)
}


# How much is written before the system is asked to begin to put it on the disk.
_BEGUN_AT: Final = 1 << 23
_SYNC_FILE_RANGE_WRITE: Final = 2

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
    return cls(None, None, reason if name is None else f"{name}; {reason}")


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


def local_path(path: str | bytes | os.PathLike[str]) -> str:
    """`as_path`, with the machine's own files named without their scheme `file://`."""
    return filesystems.here(as_path(path))


class Temporary:
    """A new file beside `path`, to be written and put in its place.

    Where `path` is of another file system, it is one of the machine's, of which `path` gets a copy.

    It is locked for as long as it is open, so `sweep` can tell it from what a process that was
    killed left behind. It is removed with the object if nothing has become of it: an interrupt may
    come before anybody else knows of it.

    Args:
        path: the file whose place it will take.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.name = _temporary_name(path)
        held: list[BinaryIO] = []
        self._left = weakref.finalize(self, _remove, self.name, held, os.getpid())
        self._left.atexit = False
        try:
            with tf_errors(path):
                self.file: BinaryIO = _open_locked(self.name, held)
        except BaseException:
            self._left()
            raise

    def sync(self) -> None:
        """Waits until the disk has what was written; the file can be renamed then."""
        self.file.flush()
        if not filesystems.is_local(self.path):
            return  # what it is copied to is another disk
        os.fsync(self.file.fileno())
        if sys.platform == "win32":
            # Windows renames no open file; elsewhere the lock is held until the file has its name.
            self.file.close()

    def install(self) -> None:
        """Takes the place of `path`, durably."""
        self.sync()
        filesystems.rename(self.name, self.path)
        self._left.detach()
        self.file.close()
        sync_directory(os.path.dirname(self.path) or ".")

    def discard(self) -> None:
        """Closes the file and removes it, if it still has its first name."""
        with suppress(OSError):  # on a full disk there is no room for what its buffer holds
            self.file.close()
        self._left()


@finalizer
def _remove(name: str, held: list[BinaryIO], owner: int) -> None:
    for file in held:
        with suppress(OSError):
            file.close()
    # A child of fork has a copy of the object, and the file is not its own.
    if os.getpid() == owner:
        with suppress(OSError):
            os.unlink(name)


def _temporary_name(path: str) -> str:
    own = f".tempstate{uuid.uuid4().hex}"
    if filesystems.is_local(path):
        return path + own
    return os.path.join(tempfile.gettempdir(), os.path.basename(path) + own)


def _sync_file_range() -> Any:
    """Linux's call that begins to write a part of a file to its disk; None where there is none."""
    found = getattr(ctypes.CDLL(None), "sync_file_range", None) if sys.platform == "linux" else None
    if found is not None:
        found.argtypes = [ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint]
    return found


_begin_to_write = _sync_file_range()


class _Flowing(io.FileIO):
    """A file that goes to the disk while it is written.

    The system keeps what it is given for as long as it has room, and all of it would still have to
    be written when the file is synced.
    """

    _waiting = 0

    def write(self, data: Any) -> int:
        """Writes bytes; how many."""
        written = super().write(data)
        self._waiting += written
        if self._waiting >= _BEGUN_AT and _begin_to_write is not None:
            # It may fail, as on a disk that is full: the sync at the end tells of it.
            start = self.tell() - self._waiting
            _begin_to_write(self.fileno(), start, self._waiting, _SYNC_FILE_RANGE_WRITE)
            self._waiting = 0
        return written


def _made(name: str) -> BinaryIO:
    return io.BufferedWriter(_Flowing(name, "xb"))


def _open_locked(name: str, held: list[BinaryIO]) -> BinaryIO:
    """Makes a file that is locked, and has `held` hold it at once."""
    while True:
        file = _made(name)
        held[:] = [file]
        if sys.platform == "win32":
            return file
        # A file system without locks is written all the same; nothing is swept there.
        with suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_EX)
        # Before it was locked, a sweep may have taken it for a dead process's. Not all file systems
        # count names.
        if os.fstat(file.fileno()).st_nlink or os.path.lexists(name):
            return file
        file.close()


@contextmanager
def atomic_write(path: str) -> Iterator[BinaryIO]:
    """Opens a temporary file beside `path` that takes its place when the block ends well.

    A reader sees the old content or all of the new one; after a crash the name never holds half a
    file. An exception in the block removes the temporary file and leaves `path` alone.
    """
    path = local_path(path)
    with tf_errors(path):
        temporary = Temporary(path)
        try:
            yield temporary.file
            temporary.install()
        except BaseException:
            temporary.discard()
            raise


@contextmanager
def local_copy(path: str) -> Iterator[str]:
    """A path by which libraries that know the machine's file system alone find a file.

    Where it is of another file system, that is a copy, which lasts as long as the block.
    """
    path = local_path(path)
    if filesystems.is_local(path):
        yield path
        return
    with tempfile.TemporaryDirectory() as folder:
        name = os.path.join(folder, "copy")
        with tf_errors(path):
            filesystems.copy(path, name)
        yield name


def link_over(source: str, target: str) -> None:
    """Gives a file a second name, in one step if another file has that name.

    Where the file system has no links, `target` becomes a copy.
    """
    if not filesystems.is_local(source):
        filesystems.copy(source, target)
        return
    with open(source, "r+b") as file:
        if sys.platform != "win32":
            # One lock serves both names, so nobody sweeps the link before it has its place. Whoever
            # wrote the file may hold the lock still.
            with suppress(OSError):
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        name = _temporary_name(target)
        try:
            os.link(source, name)
        except OSError:
            with atomic_write(target) as copy:
                shutil.copyfileobj(file, copy)
            return
        try:
            os.replace(name, target)
        except BaseException:
            os.unlink(name)
            raise


def sweep(directory: str) -> None:
    """Removes the temporary files of a directory that no living process is writing.

    Without file locks (on Windows) nothing is removed.
    """
    if sys.platform == "win32":
        return
    try:
        names = [n for n in os.listdir(directory) if _TEMPORARY.search(n)]
    except OSError:
        return
    for name in names:
        path = os.path.join(directory, name)
        with suppress(OSError), open(path, "r+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.unlink(path)


@contextmanager
def directory_turn(path: str, patience: float) -> Iterator[None]:
    """A block that processes which write into a directory enter one after the other.

    It is the directory itself that is locked, so nothing is left in it. Where the file system has
    no such locks, and once patience is over, as with a process that was stopped in its turn, the
    block is entered all the same.

    Args:
        path: the directory.
        patience: in seconds.
    """
    handle = None
    if sys.platform != "win32":
        with suppress(OSError):
            handle = os.open(path, os.O_RDONLY)
    try:
        if handle is not None:
            _lock_within(handle, patience)
        yield
    finally:
        if handle is not None:
            with suppress(OSError):
                os.close(handle)


def _lock_within(handle: int, patience: float) -> None:
    end = time.monotonic() + patience
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > end:
                return
            time.sleep(0.002)
        except OSError:
            return
        else:
            return


def sync_directory(path: str) -> None:
    """Makes renames inside a directory durable, on systems that can."""
    with suppress(OSError):
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def make_directories(path: str) -> None:
    """Makes a directory and those above it, where they are missing."""
    with tf_errors(path):
        filesystems.of(path).makedirs(path)


def make_directory(path: str) -> None:
    """Makes a directory, if only it is missing; on other file systems those above it as well."""
    if not filesystems.is_local(path):
        make_directories(path)
        return
    try:
        os.mkdir(path)
    except (FileNotFoundError, FileExistsError):
        pass  # what is written into it names the file, as TensorFlow does
    except OSError as e:
        if not os.path.isdir(path):
            raise error_from_os(e, path) from e


def write_file(path: str, data: bytes) -> None:
    """Writes a whole file, atomically where the file system is the machine's."""
    path = local_path(path)
    if not filesystems.is_local(path):
        with tf_errors(path), filesystems.of(path).open(path, "wb", None, None) as remote:
            remote.write(data)
        return
    with atomic_write(path) as f:
        f.write(data)


def read_file(path: str) -> bytes:
    """The bytes of a file; NotFoundError and its kin instead of OSError."""
    path = local_path(path)
    try:
        return filesystems.of(path).read(path)
    except OSError as e:
        raise error_from_os(e, path) from e
