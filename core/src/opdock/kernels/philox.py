"""What random kernels share: the blocks of Philox4x32-10, TF's places in it, and their arguments.

Words of 32 bits are held in wider integers, Python's own or an array library's int64, and only
operators touch them, so the same lines serve every kind of buffer. No step leaves the range of
int64: nothing depends on what a library does when integers overflow.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from opdock.kernels.array_api import dims, ints, invalid

__all__ = [
    "RESERVED", "Place", "PlaceWords", "blocks", "draw_shape", "int_range", "sample_counts",
    "shuffle_targets", "shuffled", "stateless_place",
]  # fmt: skip

Word = Any
"""A word, or an int64 array of words."""
Place = tuple[int, int]
"""A 64-bit key and a 128-bit counter: where in which stream."""
PlaceWords = tuple[Sequence[Word], Sequence[Word]]
"""A place by its words, the lowest first: compiled programs get them as arrays."""

RESERVED: Final = 256
"""Blocks that TF sets aside for each output element, whatever is used: a part of the bits."""

_WORD: Final = (1 << 32) - 1
_LONG: Final = (1 << 64) - 1
# c * M is (c << 32) + c * (M - 2**32), whose second term stays above -2**62.
_MULTIPLY: Final = (0xD2511F53 - (1 << 32), 0xCD9E8D57 - (1 << 32))
_WEYL: Final = (0x9E3779B9, 0xBB67AE85)
_SCRAMBLE: Final = 0x02461E293EC8F720
_FEW: Final = 8
"""Blocks that Python's integers make faster than NumPy's calls begin."""


# ---------------------------------------------------------------- blocks
def blocks(place: Place | PlaceWords, index: Any, last: int) -> tuple[Word, Word, Word, Word]:
    """The blocks that are `index` blocks after a place.

    Args:
        place: where the stream stands.
        index: an integer or an int64 array, not negative. It is not written.
        last: no index is larger.

    Returns:
        The four words, each in the form of `index`.
    """
    key, counter = place
    if isinstance(index, np.ndarray) and index.ndim and 0 < index.size <= _FEW:
        if isinstance(key, int):
            found = [blocks(place, i, i) for i in index.reshape(-1).tolist()]
            return tuple(np.array(found, np.int64).T.reshape(4, *index.shape))
    c0, c1, c2, c3 = _counters(_words(counter, 4), index, last)
    k0, k1 = _words(key, 2)
    for _ in range(10):
        a, b = c0 * _MULTIPLY[0], c2 * _MULTIPLY[1]
        # In place: memory is what this costs. A counter's constant words are Python integers.
        c0 += a >> 32
        c2 += b >> 32
        c1 ^= k0
        c3 ^= k1
        c2 ^= c1
        c0 ^= c3
        a &= _WORD
        b &= _WORD
        c0, c1, c2, c3 = c2, b, c0, a
        k0, k1 = (k0 + _WEYL[0]) & _WORD, (k1 + _WEYL[1]) & _WORD
    return c0, c1, c2, c3


def _words(number: int | Sequence[Word], count: int) -> list[Word]:
    if isinstance(number, int):
        return [number >> 32 * i & _WORD for i in range(count)]
    return list(number)


def _counters(words: list[Word], index: Any, last: int) -> list[Word]:
    """The words of a counter plus `index`; only those that differ between blocks are arrays."""
    # Of words in arrays nobody knows how large they are.
    if isinstance(words[0], int) and words[0] + last <= _WORD:
        return [index + words[0], *words[1:]]
    out, carry = [], index
    for word in words:
        total = carry + word
        out.append(total & _WORD)
        carry = total >> 32
    return out


# ---------------------------------------------------------------- streams
def stateless_place(seed: Any) -> Place:
    """Where a stateless op draws: one block under a fixed key scrambles its two seeds.

    Raises:
        InvalidArgumentError: `seed` has not two elements.
    """
    if np.shape(seed) != (2,):
        raise invalid(f"seed must have shape [2], not {list(np.shape(seed))}")
    first, second = ints(seed)
    start = (first & _LONG) | (second & _LONG) << 64
    k0, k1, c2, c3 = blocks((_SCRAMBLE, start), 0, 0)
    return k0 | k1 << 32, c2 << 64 | c3 << 96


def shuffle_targets(place: Place, length: int) -> npt.NDArray[np.int64]:
    """For each of `length` >= 1 rows but the last, how far behind it the row is that it changes
    places with, one after the other: TF's shuffle, which draws a word for each.
    """
    count = -(-(length - 1) // 4)
    words = np.stack(blocks(place, np.arange(count, dtype=np.int64), count), axis=1)
    # One modulo for each of the shrinking tails.
    return words.reshape(-1)[: length - 1] % np.arange(length, 1, -1, dtype=np.int64)


def shuffled(place: Place, length: int) -> npt.NDArray[np.int64]:
    """The order of `length` >= 1 rows after TF's shuffle.

    Each swap depends on those before it, so the order is found on the host.
    """
    order = list(range(length))
    for i, offset in enumerate(shuffle_targets(place, length).tolist()):
        j = i + offset
        order[i], order[j] = order[j], order[i]
    return np.asarray(order, np.int64)


# ---------------------------------------------------------------- arguments
def draw_shape(shape: Any) -> tuple[int, ...]:
    """The `shape` input as a tuple; InvalidArgumentError when it is no shape."""
    if np.ndim(shape) != 1:
        raise invalid(
            f"shape must be a vector of {{int32,int64}}, got shape {list(np.shape(shape))}"
        )
    out = tuple(ints(shape))
    if any(d < 0 for d in out):
        raise invalid(f"Dimensions must be >= 0, got {list(out)}")
    return out


def int_range(low: Any, high: Any, count: int) -> tuple[int, int]:
    """The first of the integers from which `count` are drawn, and how many there are.

    Raises:
        InvalidArgumentError: a bound is no scalar, or there are none to draw from.
    """
    if np.shape(low) != () or np.shape(high) != ():
        raise invalid(
            f"minval and maxval must be 0-D, got shapes {list(np.shape(low))} and "
            f"{list(np.shape(high))}"
        )
    first, last = int(low), int(high)
    if count and first >= last:
        raise invalid(f"Need minval < maxval, got {first} >= {last}")
    return first, last - first


def sample_counts(logits: Any, num_samples: Any) -> tuple[int, int]:
    """The rows of `logits`, and how many classes are drawn for each.

    Raises:
        InvalidArgumentError: `logits` is no matrix, has no classes, or the number is negative.
    """
    if len(logits.shape) != 2:
        raise invalid(f"logits should be a matrix, got shape {dims(logits.shape)}")
    (count,) = ints(num_samples)
    if count < 0:
        raise invalid(f"num_samples should be nonnegative, got {count}")
    if logits.shape[1] == 0:
        raise invalid("num_classes should be positive, got 0")
    return int(logits.shape[0]), count
