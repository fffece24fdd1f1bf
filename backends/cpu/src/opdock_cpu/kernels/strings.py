"""String kernels: joining, splitting, cutting, case and length."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from opdock.plugin import KernelTable, NodeSig, checks, errors
from opdock_cpu.jit.looped import Looped
from opdock_cpu.jit.strings import joined, made, measured
from opdock_cpu.text.arrays import Array, array_of, as_bytes, each, flat, one, shown
from opdock_cpu.text.packed import Packed, marks, packed

__all__ = ["table"]

table = KernelTable()

_WHITE_SPACE: Final = b" \t\n\r\v\f"


@table.binder("StringJoin")
def string_join(sig: NodeSig) -> Callable[..., Array]:
    """Joins element by element; scalars are repeated."""
    mark = as_bytes(sig.attrs["separator"])

    def run(*inputs: Any) -> Array:
        arrays = [np.asarray(x, object) for x in inputs]
        shapes = {a.shape for a in arrays if a.ndim}
        if len(shapes) > 1:
            raise checks.invalid(f"Input shapes do not match: {sorted(shapes)}")
        shape = shapes.pop() if shapes else ()
        count = math.prod(shape)
        columns = [a.reshape(-1) if a.ndim else np.broadcast_to(a, count) for a in arrays]
        return _joined(columns, mark, shape)

    return run


def _joined(columns: Sequence[Array], mark: bytes, shape: tuple[int, ...]) -> Array:
    """The strings of each row as one."""
    if not len(columns):
        return array_of([b""] * math.prod(shape), shape)
    together = joined(columns, mark)
    if together is not None:
        return together.reshape(shape)
    return array_of(map(mark.join, zip(*columns, strict=True)), shape)


# ---------------------------------------------------------------- splitting
@table.binder("StringSplit")
def string_split(sig: NodeSig) -> Callable[..., tuple[Array, Array, Array]]:
    """Splits at each of the delimiter's bytes."""
    skip_empty = sig.attrs["skip_empty"]

    def run(strings: Array, delimiter: Array) -> tuple[Array, Array, Array]:
        _check_vector(strings, delimiter, "delimiter")
        found = _split(strings, one(delimiter), skip_empty, empty=0)
        if found is not None:
            return found
        split = _splitter(one(delimiter))
        rows = [split(s) if s else [] for s in flat(strings)]
        if skip_empty:
            rows = [[part for part in row if part] for row in rows]
        return _sparse(rows)

    return run


def _split(
    strings: Array, separators: bytes, skip: bool, empty: int
) -> tuple[Array, Array, Array] | None:
    """Splits at each of these bytes, of which there have to be some; None if there is no code."""
    whole = packed(strings) if separators else None
    found = None if whole is None else whole.split(marks(separators), skip, empty)
    if whole is None or found is None:
        return None
    counts, starts, ends = found
    return _placed(counts, whole.pieces(starts, ends, (starts.size,)))


def _splitter(marks: bytes) -> Callable[[bytes], list[bytes]]:
    if not marks:
        return lambda s: [s[i : i + 1] for i in range(len(s))]
    if len(marks) == 1:
        return lambda s: s.split(marks)
    return re.compile(b"[" + re.escape(marks) + b"]").split


@table.binder("StringSplitV2")
def string_split_v2(sig: NodeSig) -> Callable[..., tuple[Array, Array, Array]]:
    """Splits as `bytes.split` does."""
    limit = sig.attrs["maxsplit"]

    def run(strings: Array, sep: Array) -> tuple[Array, Array, Array]:
        _check_vector(strings, sep, "sep")
        mark = one(sep)
        if limit < 0 and len(mark) <= 1:
            found = _split(strings, mark or _WHITE_SPACE, not mark, empty=len(mark))
            if found is not None:
                return found
        items = flat(strings)
        if limit == 0:
            return _sparse([[s] for s in items])
        if mark:
            return _sparse([s.split(mark, limit) for s in items])
        return _sparse([_words(s, limit) for s in items])

    return run


def _words(text: bytes, limit: int) -> list[bytes]:
    words = text.split(None, limit)
    # TF keeps an empty rest when the limit is reached.
    return [*words, b""] if limit > 0 and len(words) == limit else words


def _check_vector(strings: Array, mark: Array, name: str) -> None:
    if np.ndim(strings) != 1:
        raise checks.invalid(f"input must be a vector, got shape: {checks.dims(np.shape(strings))}")
    if np.ndim(mark) != 0:
        raise checks.invalid(f"{name} must be a scalar, got shape: {checks.dims(np.shape(mark))}")


def _sparse(rows: list[list[bytes]]) -> tuple[Array, Array, Array]:
    counts = np.fromiter(map(len, rows), np.int64, len(rows))
    values = [part for row in rows for part in row]
    return _placed(counts, array_of(values, (len(values),)))


def _placed(counts: Array, values: Array) -> tuple[Array, Array, Array]:
    """A sparse matrix of rows that have so many strings each."""
    indices = np.empty((values.size, 2), np.int64)
    indices[:, 0] = np.repeat(np.arange(counts.size), counts)
    indices[:, 1] = np.arange(values.size) - np.repeat(np.cumsum(counts) - counts, counts)
    return indices, values, np.array([counts.size, counts.max(initial=0)], np.int64)


# ---------------------------------------------------------------- each string
@table.kernel("StringStrip")
def string_strip(ctx: Any, strings: Array) -> Array:
    """Without white space at the ends."""
    whole = packed(strings)
    found = None if whole is None else whole.stripped()
    return each(bytes.strip, strings) if found is None else found


@table.binder("StringLower")
def string_lower(sig: NodeSig) -> Callable[[Array], Array]:
    """In lower case."""
    return _cased(sig, bytes.lower, str.lower)


@table.binder("StringUpper")
def string_upper(sig: NodeSig) -> Callable[[Array], Array]:
    """In upper case."""
    return _cased(sig, bytes.upper, str.upper)


def _cased(
    sig: NodeSig, ascii_only: Callable[[bytes], bytes], unicode: Callable[[str], str]
) -> Callable[[Array], Array]:
    encoding = sig.attrs["encoding"]
    if encoding not in ("", "utf-8"):
        raise checks.invalid(f"only utf-8 or '' (no encoding) is supported, received {encoding}")

    def run(strings: Array) -> Array:
        whole = packed(strings)
        if whole is not None and (whole.ascii or not encoding):
            return whole.instead(ascii_only(whole.data.tobytes()))
        if not encoding:
            return each(ascii_only, strings)
        return each(lambda s: unicode(s.decode("utf-8", "replace")).encode(), strings)

    return run


@table.binder("StringLength")
def string_length(sig: NodeSig) -> Callable[[Array], Array]:
    """Bytes or code points."""
    by_bytes = sig.attrs["unit"] == "BYTE"

    def run(strings: Array) -> Array:
        sizes = _bytes_of(strings) if by_bytes else _characters_of(strings)
        return sizes.astype(np.int32).reshape(np.shape(strings))

    return run


def _bytes_of(strings: Array) -> Array:
    bounds = measured(strings)
    if bounds is not None:
        return np.diff(bounds)
    items = flat(strings)
    return np.fromiter(map(len, items), np.int64, len(items))


def _characters_of(strings: Array) -> Array:
    whole = packed(strings)
    if whole is not None:
        return whole.characters()
    items = flat(strings)
    return np.fromiter(map(characters, items), np.int64, len(items))


def characters(text: bytes) -> int:
    """The number of code points: of the bytes that are no continuation of another one."""
    if text.isascii():
        return len(text)
    return len(starts(text))


def starts(text: bytes) -> Array:
    """Where the code points of a string in UTF-8 begin."""
    data = np.frombuffer(text, np.uint8)
    return np.flatnonzero((data & 0xC0) != 0x80)


@table.binder("Substr")
def substr(sig: NodeSig) -> Callable[..., Array]:
    """Parts of strings, which broadcast against the positions."""
    cut, told = _CUTS[sig.attrs["unit"]]
    by_bytes = cut is _cut_bytes

    def run(strings: Array, pos: Array, length: Array) -> Array:
        if np.shape(pos) != np.shape(length):
            raise checks.invalid(
                f"pos and len shapes must match: {checks.dims(np.shape(pos))} vs. "
                f"{checks.dims(np.shape(length))}"
            )
        shape = checks.broadcast_shapes(np.shape(strings), np.shape(pos))
        whole = packed(strings)
        found = None if whole is None else _cut_all(whole, pos, length, by_bytes, shape)
        if found is not None:
            return found
        items = flat(np.broadcast_to(np.asarray(strings, object), shape))
        places = np.broadcast_to(pos, shape).reshape(-1).tolist()
        sizes = np.broadcast_to(length, shape).reshape(-1).tolist()
        out = []
        for i, (text, at, size) in enumerate(zip(items, places, sizes, strict=True)):
            part = cut(text, at, size)
            if part is None:
                what = told.format(shown(text))
                raise checks.invalid(f"pos {at} out of range for {what} at index {i}")
            out.append(part)
        return array_of(out, shape)

    return run


def _cut(
    begin: int, end: int, starts: Array, ends: Array, wrong: Array, bounds: Array, count: int,
    pos: int, length: int, rest: int,
) -> None:  # fmt: skip
    """The same part of all strings; `rest` says whether a length below zero means all of it."""
    for turn in range(begin, end):
        bad = 0
        for i in range(count):
            first, last = bounds[i], bounds[i + 1]
            at = first + pos if pos >= 0 else last + pos
            bad += 1 if (at < first) | (at > last) else 0
            to = min(at + length, last)
            if length < 0:
                to = last if rest > 0 else at
            starts[i] = at
            ends[i] = to
        wrong[turn] = bad


_CUT: Final = Looped(_cut)


def _cut_all(
    strings: Packed, pos: Array, length: Array, by_bytes: bool, shape: tuple[int, ...]
) -> Array | None:
    """The parts, where bytes are what is counted and all positions lie inside; else None."""
    if not (by_bytes or strings.ascii):
        return None
    if np.ndim(pos) == 0 and shape == strings.shape:
        begins, ends = (np.empty(strings.starts.size, np.int64) for _ in range(2))
        wrong = np.empty(1, np.int64)
        most, steps = strings.data.size + 1, begins.size
        where = max(-most, min(int(pos), most)), min(int(length), most)
        if _CUT(1, steps, begins, ends, wrong, strings.bounds, steps, *where, int(by_bytes)):
            return None if wrong[0] else strings.pieces(begins, ends, shape)
    sizes, starts = (a.reshape(strings.shape) for a in (strings.sizes, strings.starts))
    at, count = np.asarray(pos, np.int64), np.asarray(length, np.int64)
    first = np.where(at < 0, at + sizes, at)
    if ((first < 0) | (first > sizes)).any():
        return None
    rest = sizes - first
    taken = np.where(count < 0, rest if by_bytes else 0, np.minimum(count, rest))
    first = np.broadcast_to(starts + first, shape)
    return strings.pieces(first, first + taken, shape)


def _cut_bytes(text: bytes, pos: int, size: int) -> bytes | None:
    at = pos + len(text) if pos < 0 else pos
    if not 0 <= at <= len(text):
        return None
    return text[at:] if size < 0 else text[at : at + size]


def _cut_characters(text: bytes, pos: int, size: int) -> bytes | None:
    count = characters(text)
    if not -count <= pos <= count:
        return None
    first = pos + count if pos < 0 else pos
    last = min(first + max(size, 0), count)
    bounds = [*starts(text).tolist(), len(text)]
    # Bytes before the first character belong to it.
    return text[bounds[first] if first else 0 : bounds[last] if last else 0]


_CUTS: dict[str, tuple[Callable[[bytes, int, int], bytes | None], str]] = {
    "BYTE": (_cut_bytes, "string b'{}'"),
    "UTF8_CHAR": (_cut_characters, "string"),
}


# ---------------------------------------------------------------- along dimensions
@table.binder("ReduceJoin")
def reduce_join(sig: NodeSig) -> Callable[..., Array]:
    """Joins along dimensions, the first of them fastest."""
    mark, keep = as_bytes(sig.attrs["separator"]), sig.attrs["keep_dims"]

    def run(strings: Array, axes: Array) -> Array:
        source = np.asarray(strings, object)
        gone = _axes(axes, source.ndim)
        kept = [i for i in range(source.ndim) if i not in gone]
        shape = tuple(source.shape[i] for i in kept)
        width = math.prod(source.shape[i] for i in gone)
        rows = source.transpose([*kept, *reversed(gone)]).reshape(math.prod(shape), width)
        if keep:
            shape = tuple(1 if i in gone else n for i, n in enumerate(source.shape))
        return _joined(list(rows.T), mark, shape)

    return run


def _axes(axes: Array, rank: int) -> list[int]:
    out: list[int] = []
    for axis in np.reshape(axes, -1).tolist():
        if not -rank <= axis < rank:
            raise errors.OutOfRangeError(
                None, None,
                f"Invalid reduction dimension {axis} for input with {rank} dimension(s)",
            )  # fmt: skip
        if axis % rank in out:
            raise checks.invalid(f"Duplicate reduction dimension {axis}")
        out.append(axis % rank)
    return out


@table.binder("UnsortedSegmentJoin")
def unsorted_segment_join(sig: NodeSig) -> Callable[..., Array]:
    """Joins the strings of each segment; none goes before the first that is not empty."""
    mark = as_bytes(sig.attrs["separator"])

    def run(strings: Array, ids: Array, num_segments: Array) -> Array:
        source, segments = np.asarray(strings, object), np.asarray(ids)
        count = int(num_segments)
        _check_segments(source, segments, count)
        inner = source.shape[segments.ndim :]
        width = math.prod(inner)
        keys = segments.reshape(-1, 1).astype(np.int64) * width + np.arange(width)
        return _joined_by(source.reshape(-1), keys.reshape(-1), mark, (count, *inner))

    return run


def _joined_by(source: Array, keys: Array, mark: bytes, shape: tuple[int, ...]) -> Array:
    """The strings of each key as one, in order."""
    whole = packed(source)
    found = None if whole is None else _gathered(whole, keys, mark, shape)
    if found is not None:
        return found
    rows: list[list[bytes]] = [[] for _ in range(math.prod(shape))]
    for key, text in zip(keys.tolist(), source.tolist(), strict=True):
        if text or rows[key]:
            rows[key].append(text)
    return array_of(map(mark.join, rows), shape)


def _totals(
    begin: int, end: int, sizes: Array, keys: Array, bounds: Array, count: int, between: int
) -> None:
    """How many bytes come together for each key; the only turn is all of it."""
    for _ in range(begin, end):
        for i in range(count):
            key = keys[i]
            have = sizes[key]
            sizes[key] = have + (bounds[i + 1] - bounds[i]) + (between if have > 0 else 0)


def _together(
    begin: int, end: int, out: Array, places: Array, starts: Array, keys: Array, data: Array,
    bounds: Array, marks: Array, count: int, between: int,
) -> None:  # fmt: skip
    """Puts the bytes of each key where they go; `places` are how far they have come."""
    for _ in range(begin, end):
        for i in range(count):
            key = keys[i]
            to = places[key]
            if to > starts[key]:
                for c in range(between):
                    out[to + c] = marks[c]
                to += between
            size = bounds[i + 1] - bounds[i]
            for c in range(size):
                out[to + c] = data[bounds[i] + c]
            places[key] = to + size


_TOTALS: Final = Looped(_totals)
_TOGETHER: Final = Looped(_together)


def _gathered(strings: Packed, keys: Array, mark: bytes, shape: tuple[int, ...]) -> Array | None:
    """The same from packed strings; None if there is no code."""
    count, sizes = keys.size, np.zeros(math.prod(shape), np.int64)
    if not _TOTALS(1, count, sizes, keys, strings.bounds, count, len(mark)):
        return None
    bounds = np.zeros(sizes.size + 1, np.int64)
    np.cumsum(sizes, out=bounds[1:])
    out, starts, places = np.empty(bounds[-1], np.uint8), bounds[:-1], bounds[:-1].copy()
    marks = np.frombuffer(mark or b" ", np.uint8)
    arrays = (out, places, starts, keys, strings.data, strings.bounds, marks)
    if not _TOGETHER(1, count + out.size, *arrays, count, len(mark)):
        return None
    return made(out, starts, bounds[1:], shape)


def _check_segments(source: Array, segments: Array, count: int) -> None:
    if segments.ndim == 0:
        raise checks.invalid("Segment_id cannot have rank 0")
    if segments.ndim > source.ndim:
        raise errors.OutOfRangeError(
            None, None,
            f"Invalid segment_id rank {segments.ndim} for input with {source.ndim} dimension(s)",
        )  # fmt: skip
    for i, (a, b) in enumerate(zip(segments.shape, source.shape, strict=False)):
        if a != b:
            raise checks.invalid(
                f"Segment dimension is {a} while input dimension is {source.ndim} in rank {i}"
            )
    if segments.size and not (segments.min() >= 0 and segments.max() < count):
        raise checks.invalid(
            "segment_ids are not allowed to exceed num_segments or to have negative values."
        )
