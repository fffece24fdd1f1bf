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

On a file system that is not the machine's the order is the same. It has no locks, so a prefix there
is for one process at a time, and an index is as whole as what the file system itself writes.
"""

from __future__ import annotations

import io
import itertools
import os
import re
import shutil
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext, suppress
from typing import Any

from opdock import errors
from opdock.io import filesystems, protos
from opdock.io.bundle_format import data_path, index_path
from opdock.io.files import (
    directory_turn,
    is_file,
    link_over,
    names_in,
    sweep,
    sync_directory,
    tf_errors,
    write_file,
)
from opdock.io.table import TableBuilder, TableReader

HEADER_KEY = b""
VERSION = 1

_DATA = re.compile(r"\.data-\d{5}-of-(\d{5})")
# The directories in which a sharded save collects its parts; see `opdock.train.saver_builder`.
_PARTS = re.compile(r"_temp_[0-9a-f]{32}$")
# Two saves to one prefix, as of a service's thread and the program's own, take turns; so do those
# of two processes, for each of which others have so much patience (seconds).
_committing = threading.Lock()
_PATIENCE = 30.0
# A save that is alive makes or renames a file in its directory far more often than this (seconds).
_ABANDONED = 3600.0


def commit(prefix: str, sources: Sequence[str], entries: Mapping[bytes, Any]) -> None:
    """Makes the checkpoint `prefix` of complete, synced data files.

    Args:
        prefix: the checkpoint; one that exists is replaced.
        sources: the data files, one a shard, on the same file system; they are renamed.
        entries: what the index says of each key.
    """
    directory = filesystems.parent(prefix) or "."
    local = filesystems.is_local(prefix)
    turn = directory_turn(directory, _PATIENCE) if local else nullcontext()
    with _committing, turn, tf_errors(prefix):
        try:
            _take_places(prefix, sources, entries)
        except BaseException:
            # The disk may be full: what no index lists makes room again.
            listed = _shards_in_force(prefix)
            if listed is not None or not is_file(index_path(prefix)):
                _remove_other_data(prefix, listed)
            raise
    if local:
        sweep(directory)
        _sweep_parts(directory)


def _take_places(prefix: str, sources: Sequence[str], entries: Mapping[bytes, Any]) -> None:
    shards = len(sources)
    if _shards_in_force(prefix) != shards:
        _install(prefix, sources, shards)
        write_index(prefix, shards, entries)
    else:
        taken = {number for _, number in _data_files(prefix)}
        detour = next(n for n in itertools.count(shards + 1) if n not in taken)
        _install(prefix, sources, detour)
        write_index(prefix, detour, entries)
        again = link_over if filesystems.is_local(prefix) else filesystems.copy
        for i in range(shards):
            again(data_path(prefix, i, detour), data_path(prefix, i, shards))
        _sync(prefix)
        write_index(prefix, shards, entries)
    _remove_other_data(prefix, shards)


def write_index(prefix: str, shards: int, entries: Mapping[bytes, Any]) -> None:
    """Writes the index of a bundle in one step."""
    header = protos.BundleHeaderProto(num_shards=shards)
    header.version.producer = VERSION
    table = io.BytesIO()
    builder = TableBuilder(table)
    builder.add(HEADER_KEY, header.SerializeToString())
    for key in sorted(entries):
        builder.add(key, entries[key].SerializeToString())
    builder.finish()
    write_file(index_path(prefix), table.getbuffer())


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
    if filesystems.is_local(prefix):
        sync_directory(filesystems.parent(prefix) or ".")


def _data_files(prefix: str) -> list[tuple[str, int]]:
    """The data files of the prefix, and of how many shards each says that it is."""
    directory, base = filesystems.parent(prefix), os.path.basename(prefix)
    found = []
    for name in names_in(directory or "."):
        told = _DATA.fullmatch(name.removeprefix(base)) if name.startswith(base) else None
        if told is not None:
            found.append((os.path.join(directory, name), int(told.group(1))))
    return found


def _remove_other_data(prefix: str, shards: int | None) -> None:
    """Removes the data files of the prefix that are not of this number of shards, if any."""
    for path, number in _data_files(prefix):
        if number != shards:
            with suppress(OSError):
                filesystems.of(path).remove(path)


def give_up(prefix: str) -> None:
    """Removes all parts of a sharded save of which one, with this prefix, cannot be written."""
    directory = os.path.dirname(prefix)
    if _PARTS.search(directory):
        if filesystems.is_local(directory):
            shutil.rmtree(directory, ignore_errors=True)
            return
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
