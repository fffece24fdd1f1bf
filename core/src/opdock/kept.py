"""What is kept on disk from one process to the next, under the hash of all that it depends on.

It is believed without a further look, native code among it, so nothing is read that anyone else
could have written: folder and files belong to the user, nobody else may write to them, none is a
link, and their place never depends on the working directory. What does not hold to that, or is
damaged, is as if it were not there, and nothing is kept where a system cannot tell. A file is
written whole or not at all. `OPDOCK_CACHE` names the place.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

__all__ = ["read", "write"]

_DIGEST: Final = 32
_CAN_TELL: Final = hasattr(os, "getuid") and os.open in os.supports_dir_fd
_NO_LINK: Final = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_FOLDER: Final = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | _NO_LINK


def read(kind: str, name: str) -> bytes | None:
    """What was kept, unless it is absent, damaged or may be another's.

    Args:
        kind: the folder of what is alike.
        name: of the file in it.
    """
    with suppress(OSError), _opened(kind, make=False) as folder:
        if folder is None:
            return None
        handle = os.open(name, os.O_RDONLY | _NO_LINK, dir_fd=folder)
        with os.fdopen(handle, "rb") as file:
            if not _own(handle, stat.S_ISREG):
                return None
            data = file.read()
        digest, kept = data[:_DIGEST], data[_DIGEST:]
        return kept if kept and _digest(name, kept) == digest else None
    return None


def write(kind: str, name: str, data: bytes) -> None:
    """Keeps something; a folder that cannot be written, or trusted, only costs time.

    Args:
        kind: the folder of what is alike.
        name: of the file in it.
        data: not empty.
    """
    with suppress(OSError), _opened(kind, make=True) as folder:
        if folder is None:
            return
        fresh = f"{name}.{os.urandom(16).hex()}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_LINK
        handle = os.open(fresh, flags, 0o600, dir_fd=folder)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(_digest(name, data) + data)
                file.flush()
                os.fsync(handle)
            os.replace(fresh, name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            with suppress(OSError):
                os.unlink(fresh, dir_fd=folder)
            raise


def _digest(name: str, data: bytes) -> bytes:
    # The name is a part of it, so that a file is of no use under another one's.
    return hashlib.sha256(name.encode() + b"\0" + data).digest()


def _place(kind: str) -> Path | None:
    """The folder; None if there is to be none, or it would depend on the working directory."""
    chosen = os.environ.get("OPDOCK_CACHE")
    if chosen is not None:
        return Path(chosen, kind) if os.path.isabs(chosen) else None
    base = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(base):
        base = os.path.expanduser("~/.cache")  # stays relative without a home
    return Path(base, "opdock", kind) if os.path.isabs(base) else None


@contextmanager
def _opened(kind: str, make: bool) -> Iterator[int | None]:
    """A descriptor of the folder: what is checked is what is used, whatever happens to the name."""
    place = _place(kind)
    if place is None or not _CAN_TELL:
        yield None
        return
    if make:
        place.mkdir(parents=True, exist_ok=True, mode=0o700)
    handle = os.open(place, _FOLDER)
    try:
        yield handle if _own(handle, stat.S_ISDIR) else None
    finally:
        os.close(handle)


def _own(handle: int, kind: Callable[[int], bool]) -> bool:
    """Whether it is of this kind, the user's, and nobody else's to write to."""
    found = os.fstat(handle)
    shared = found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return kind(found.st_mode) and found.st_uid == os.getuid() and not shared
