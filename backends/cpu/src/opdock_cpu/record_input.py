"""The records of many files in random order, turn after turn."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Final

import numpy as np

from opdock.plugin import Turn, errors, host_ops

__all__ = ["Options", "Yielder"]

_WORD: Final = (1 << 64) - 1
_AT_ONCE: Final = 16
"""Records that are read from one file before another has its turn."""


@dataclass(frozen=True, slots=True)
class Options:
    """What is read, and in which order.

    Attributes:
        pattern: patterns of file names, with commas between them.
        seed: for the order.
        shift: by which part of the list of files a turn begins later in it.
        buffer: among how many records the next is chosen.
        parallelism: how many files are read at the same time.
        compression: "", "ZLIB" or "GZIP".
    """

    pattern: str
    seed: int
    shift: float
    buffer: int
    parallelism: int
    compression: str


class Yielder:
    """Gives record after record; each once a turn.

    Whoever asks for records reads what is missing in the buffer, so no thread has to end.
    """

    def __init__(self, options: Options) -> None:
        self._options = options
        self._random = np.random.default_rng(options.seed & _WORD)
        self._buffer: list[bytes] = []
        self._reading = Turn(f"Records of {options.pattern} are read")
        self._mixed = self._turns()
        self._broken: errors.OpError | None = None

    def take(self, count: int) -> list[bytes]:
        """The next records.

        Raises:
            NotFoundError: no file matches.
            InvalidArgumentError: a file cannot be opened.
            DataLossError: a file is damaged.
            OutOfRangeError: the files hold no record.
        """
        with self._reading.taken():
            if self._broken is not None:
                raise self._broken
            try:
                return list(islice(self._mixed, count))
            except errors.OpError as e:
                # The same for whoever asks again: the rest of the turn is lost.
                self._broken = e
                raise

    def _turns(self) -> Iterator[bytes]:
        turn = 0
        while True:
            turn += 1
            found = False
            for record in self._turn(turn):
                found = True
                yield record
            if not found:
                raise errors.OutOfRangeError(
                    None, None, f"The files at {self._options.pattern} hold no records"
                )

    def _turn(self, turn: int) -> Iterator[bytes]:
        """All records once, each chosen among those in the buffer."""
        buffer = self._buffer
        for record in self._read(self._files(turn)):
            buffer.append(record)
            if len(buffer) >= max(self._options.buffer, 1):
                yield self._any()
        while buffer:
            yield self._any()

    def _any(self) -> bytes:
        buffer = self._buffer
        i = int(self._random.integers(len(buffer)))
        buffer[i], buffer[-1] = buffer[-1], buffer[i]
        return buffer.pop()

    def _files(self, turn: int) -> list[bytes]:
        options = self._options
        found: list[bytes] = []
        for pattern in options.pattern.split(","):
            found += host_ops.matching_files(pattern).tolist()
        if not found:
            raise errors.NotFoundError(None, None, f"Found no files at {options.pattern}")
        order = np.random.default_rng([options.seed & _WORD, turn]).permutation(len(found))
        found = [found[i] for i in order]
        start = int(options.shift * len(found)) if 0 <= options.shift < 1 else 0
        return found[start:] + found[:start]

    def _read(self, files: list[bytes]) -> Iterator[bytes]:
        """Records of several files in turns."""
        count = max(self._options.parallelism, 1)
        lanes = [self._lane(files[i::count]) for i in range(min(count, len(files)))]
        while lanes:
            for lane in tuple(lanes):
                records = list(islice(lane, _AT_ONCE))
                yield from records
                if len(records) < _AT_ONCE:
                    lanes.remove(lane)

    def _lane(self, files: list[bytes]) -> Iterator[bytes]:
        source = host_ops.tf_records(self._options.compression)
        for name in files:
            try:
                records = source(name)
            except errors.OpError as e:
                raise errors.InvalidArgumentError(
                    None, None, f"Can't open {name.decode()}: {e.message}"
                ) from e
            for _, record in records:
                yield record
