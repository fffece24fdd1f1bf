"""How the files of a checkpoint bundle take their places, whatever happens meanwhile.

A bundle is an index and the data files that it lists; the index says how many there are, and the
number is a part of their names. So one rename, that of the index, can make a new bundle of an old
one, if both have not the same data files. Where they would (a checkpoint is saved again to the
same prefix), the new data first goes by the names of a larger number of shards:

    data   -> m.data-00000-of-00002     the old index still lists ...-of-00001
    index  -> m.index, of two shards    from here on the new checkpoint is in force
    link   -> m.data-00000-of-00001     the index in force does not list it
    index  -> m.index, of one shard     the same entries, under TF's usual name
    remove    m.data-00000-of-00002

After each line a complete checkpoint can be read, by TensorFlow as well: a kill leaves at worst a
data file that no index lists, and the next commit to the prefix removes it. Every file is on the
disk before it gets its name, and every rename before the next one.
"""

from __future__ import annotations

import glob
import itertools
import os
import re
import shutil
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from opdock import errors
from opdock.io import filesystems, protos
from opdock.io.bundle_format import data_path, index_path
from opdock.io.files import (
    atomic_write,
    directory_turn,
    link_over,
    sweep,
    sync_directory,
    tf_errors,
)
from opdock.io.table import TableBuilder, TableReader
from opdock.util.shelter import sheltered

HEADER_KEY = b""
VERSION = 1

_SHARDS = re.compile(r"\.data-\d{5}-of-(\d{5})$")
# The directories in which a sharded save collects its parts; see `opdock.train.saver_builder`.
_PARTS = re.compile(r"_temp_[0-9a-f]{32}$")
# Two saves to one prefix, as of a service's thread and the program's own, take turns; so do those
# of two processes, for each of which others have so much patience (seconds).
_committing = threading.Lock()
_PATIENCE = 30.0
# A save that is alive makes or renames a file in its directory far more often than this (seconds).
_ABANDONED = 3600.0


@sheltered
def commit(prefix: str, sources: Sequence[str], entries: Mapping[bytes, Any]) -> None:
    """Makes the checkpoint `prefix` of complete, synced data files.

    Args:
        prefix: the checkpoint; one that exists is replaced.
        sources: the data files, one a shard, on the same file system; they are renamed.
        entries: what the index says of each key.
    """
    directory = filesystems.parent(prefix) or "."
    with _committing, directory_turn(directory, _PATIENCE), tf_errors(prefix):
        try:
            _take_places(prefix, sources, entries)
        except BaseException:
            # The disk may be full: what no index lists makes room again.
            listed = _shards_in_force(prefix)
            if listed is not None or not filesystems.exists(index_path(prefix)):
                _remove_other_data(prefix, listed)
            raise
    sweep(directory)
    _sweep_parts(directory)


def _take_places(prefix: str, sources: Sequence[str], entries: Mapping[bytes, Any]) -> None:
    shards = len(sources)
    if _shards_in_force(prefix) != shards:
        _install(prefix, sources, shards)
        write_index(prefix, shards, entries)
    else:
        detour = next(
            n
            for n in itertools.count(shards + 1)
            if not filesystems.matching(_data_files(prefix, n))
        )
        _install(prefix, sources, detour)
        write_index(prefix, detour, entries)
        for i in range(shards):
            link_over(data_path(prefix, i, detour), data_path(prefix, i, shards))
        _sync(prefix)
        write_index(prefix, shards, entries)
    _remove_other_data(prefix, shards)


def write_index(prefix: str, shards: int, entries: Mapping[bytes, Any]) -> None:
    """Writes the index of a bundle in one step."""
    header = protos.BundleHeaderProto(num_shards=shards)
    header.version.producer = VERSION
    with atomic_write(index_path(prefix)) as file:
        builder = TableBuilder(file)
        builder.add(HEADER_KEY, header.SerializeToString())
        for key in sorted(entries):
            builder.add(key, entries[key].SerializeToString())
        builder.finish()


def _shards_in_force(prefix: str) -> int | None:
    """How many data files the index lists; None when there is none that can be read."""
    from google.protobuf.message import DecodeError

    try:
        with TableReader(index_path(prefix)) as table:
            header = table.get(HEADER_KEY)
        return None if header is None else protos.BundleHeaderProto.FromString(header).num_shards
    except (errors.OpError, DecodeError):
        return None


def _install(prefix: str, sources: Sequence[str], shards: int) -> None:
    for i, source in enumerate(sources):
        filesystems.rename(source, data_path(prefix, i, shards))
    _sync(prefix)


def _sync(prefix: str) -> None:
    sync_directory(os.path.dirname(prefix) or ".")


def _data_files(prefix: str, shards: int) -> str:
    return f"{glob.escape(prefix)}.data-?????-of-{shards:05d}"


def _remove_other_data(prefix: str, shards: int | None) -> None:
    """Removes the data files of the prefix that are not of this number of shards, if any."""
    for path in filesystems.matching(f"{glob.escape(prefix)}.data-?????-of-?????"):
        found = _SHARDS.search(path)
        if found is not None and int(found.group(1)) != shards:
            with suppress(OSError):
                filesystems.of(path).remove(path)


def give_up(prefix: str) -> None:
    """Removes all parts of a sharded save of which one, with this prefix, cannot be written."""
    directory = filesystems.parent(prefix)
    if not _PARTS.search(directory):
        return
    if filesystems.is_local(directory):
        # What can be removed is, though something in it cannot.
        shutil.rmtree(filesystems.here(directory), ignore_errors=True)
    else:
        with suppress(OSError):
            filesystems.of(directory).rmtree(directory)


def _sweep_parts(directory: str) -> None:
    """Removes the parts of sharded saves that were killed before they were merged."""
    with suppress(OSError):
        for name in [n for n in os.listdir(directory) if _PARTS.search(n)]:
            path = os.path.join(directory, name)
            sweep(path)
            files = os.listdir(path)
            if any(".tempstate" in f for f in files):
                continue
            if time.time() - os.stat(path).st_mtime > _ABANDONED:
                shutil.rmtree(path, ignore_errors=True)
