"""Fields of a line of CSV (RFC 4180), as TF reads them: stricter than Python's `csv`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from opdock.plugin import checks


def rows(lines: Sequence[bytes], mark: bytes, quotes: bool, limit: int) -> Iterator[list[bytes]]:
    """The fields of each line; see `fields`."""
    if plain(b"".join(lines), quotes):
        for line in lines:
            yield line.split(mark)[: limit or None] if line else []
    else:
        for line in lines:
            yield list(fields(line, mark, quotes, limit))


def plain(text: bytes, quotes: bool) -> bool:
    """Whether lines are nothing but fields with the mark in between: all of them as one text."""
    return not (b"\n" in text or b"\r" in text or (quotes and b'"' in text))


def fields(line: bytes, mark: bytes, quotes: bool, limit: int) -> Iterator[bytes]:
    """The fields of a line, `limit` at most if it is positive.

    Args:
        line: the text.
        mark: what separates fields, one byte.
        quotes: whether double quotes enclose fields.
        limit: the number of fields after which nobody reads on.

    Raises:
        InvalidArgumentError: a quote stands where none may, or one is missing.
    """
    at, size, count = 0, len(line), 0
    while at < size and not (0 < limit <= count):
        if line[at] in b"\r\n":
            at += 1
            continue
        if quotes and line[at : at + 1] == b'"':
            field, at = _quoted(line, mark, at + 1)
        else:
            end = line.find(mark, at)
            end = size if end < 0 else end
            field = line[at:end]
            if b"\n" in field or b"\r" in field or (quotes and b'"' in field):
                raise checks.invalid("Unquoted fields cannot have quotes/CRLFs inside")
            at = end + 1
        count += 1
        yield field
    if size and line.endswith(mark) and not (0 < limit <= count):
        yield b""


def _quoted(line: bytes, mark: bytes, at: int) -> tuple[bytes, int]:
    """A field from behind its first quote, and where the next one begins."""
    parts = []
    while True:
        end = line.find(b'"', at)
        if end < 0 or end == len(line) - 1 or line[end + 1 : end + 2] == mark:
            break
        if line[end + 1 : end + 2] != b'"':
            raise checks.invalid("Quote inside a string has to be escaped by another quote")
        parts.append(line[at : end + 1])
        at = end + 2
    if end < 0:
        raise checks.invalid("Quoted field has to end with quote followed by delim or end")
    parts.append(line[at:end])
    return b"".join(parts), end + 2
