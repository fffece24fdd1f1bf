"""Oracle of the io family: file names. What touches files is tested on files."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.testing.reference._registry import reference

Array = npt.NDArray[Any]


def _scalar(text: bytes) -> Array:
    out = np.empty((), object)
    out[()] = text
    return out


@reference("ShardedFilename")
def sharded_filename(attrs: dict[str, Any], basename: Array, shard: Array, count: Array) -> Array:
    """Five digits each."""
    return _scalar(bytes(basename[()]) + b"-%05d-of-%05d" % (int(shard), int(count)))


@reference("ShardedFilespec")
def sharded_filespec(attrs: dict[str, Any], basename: Array, count: Array) -> Array:
    """A question mark for each digit of the shard."""
    return _scalar(bytes(basename[()]) + b"-" + b"?" * 5 + b"-of-%05d" % int(count))
