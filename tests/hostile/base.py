"""What a kind of hostile file is: valid ones to start from, and what reads them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from google.protobuf.message import DecodeError

import opdock as tf
from tests.hostile.mutations import mutate_bytes, mutate_message

Mutate = Callable[[Random, bytes], bytes]


class Wrong(Exception):
    """A damaged file was read as if it were whole."""


@dataclass(frozen=True)
class Format:
    """A kind of file.

    Attributes:
        seeds: makes valid files.
        mutate: makes a hostile file of a valid one.
        read: reads one, in a folder of its own that may be used again.
    """

    seeds: Callable[[], Sequence[bytes]]
    mutate: Mutate
    read: Callable[[bytes, Path], None]

    def case(self, seed: int, number: int) -> bytes:
        """The file of a case."""
        rng = Random(f"{seed}:{number}")
        return self.mutate(rng, rng.choice(_kept(self)))


@cache
def _kept(kind: Format) -> tuple[bytes, ...]:
    return tuple(kind.seeds())


def by_message(cls: Any, rng: Random, data: bytes) -> bytes:
    """By the fields of the message three times of four, else by its bytes."""
    if rng.random() < 0.25:
        return mutate_bytes(rng, data)
    message = mutate_message(rng, cls.FromString(data))
    return bytes(message.SerializePartialToString(deterministic=True))


def parsed(cls: Any, data: bytes) -> Any | None:
    """The message, or None where protobuf itself, which the user calls, finds none in the bytes."""
    try:
        return cls.FromString(data)
    except DecodeError:
        return None


def write(folder: Path, name: str, data: bytes) -> str:
    """The path of a file that has these bytes."""
    path = folder / name
    path.write_bytes(data)
    return str(path)


def feed(step: Callable[[], Callable[[bytes], Any]]) -> Callable[[bytes, Path], None]:
    """Reads by a step that takes the bytes, made when it is first asked for."""

    def read(data: bytes, folder: Path) -> None:
        step()(data)

    return read


def each(calls: Sequence[Callable[[bytes], Any]], data: bytes) -> None:
    """All calls, whatever each raises; the first error then, if any."""
    failed: Exception | None = None
    for call in calls:
        try:
            call(data)
        except tf.errors.OpError as e:
            failed = failed or e
    if failed is not None:
        raise failed


Drained = tuple[tf.Session, list[tuple[Any, Any]]]
"""A session, and of each dataset what begins it and what its next element is."""


MOST_ELEMENTS = 100_000
"""Records that a file of a few hundred bytes does not unpack to."""


def drained(*datasets: Any) -> Drained:
    """What `drain` takes: made once, and read as often as one likes."""
    made = [tf.data.make_initializable_iterator(d) for d in datasets]
    return tf.Session(), [(i.initializer, i.get_next()) for i in made]


def drain(session: tf.Session, datasets: Sequence[tuple[Any, Any]]) -> None:
    """All elements of each, as far as errors let it; the first error then, if any."""
    failed: Exception | None = None
    for initializer, following in datasets:
        session.run(initializer)
        for _ in range(MOST_ELEMENTS):
            try:
                session.run(following)
            except tf.errors.OutOfRangeError:
                break
            except tf.errors.OpError as e:
                failed = failed or e
        else:
            raise Wrong("a dataset of a small file does not end")
    if failed is not None:
        raise failed
