"""Arrays as text, in the two formats of TF's assertions, `tf.Print` and `tf.print`."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
_ESCAPES = {"\\": "\\\\", '"': '\\"', "'": "\\'", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def summarize(value: Any, limit: int) -> str:
    """The first `limit` elements (all if negative): "1 2 3...", rows in brackets."""
    array = _host(value)
    count = array.size if limit < 0 else min(limit, array.size)
    if array.ndim == 0:
        return text_of(array[()], quote=False) if count else "..."
    flat = [text_of(v, quote=False) for v in array.reshape(-1)[:count]]
    out, _ = _rows(flat, 0, array.shape, 0)
    return out + ("..." if array.size > count else "")


def _rows(flat: list[str], index: int, shape: tuple[int, ...], depth: int) -> tuple[str, int]:
    if index >= len(flat):
        return "", index
    if depth == len(shape) - 1:
        row = flat[index : index + shape[depth]]
        cut = "..." if depth and len(row) < shape[depth] else ""
        return " ".join(row) + cut, index + len(row)
    out = ""
    for _ in range(shape[depth]):
        if index < len(flat):
            inner, index = _rows(flat, index, shape, depth + 1)
            out += f"[{inner}]"
    return out, index


def summarize_edges(value: Any, edge: int) -> str:
    """`edge` elements (all if negative) at both ends of each axis: "[1 2 3 ... 8 9 10]"."""
    array = _host(value)
    return _edges(array, edge if edge >= 0 else max(array.size, 1), array.ndim)


def _edges(array: Array, edge: int, rank: int) -> str:
    if array.ndim == 0:
        return text_of(array[()], quote=True)
    gap = " " if array.ndim == 1 else "\n" * (array.ndim - 1) + " " * (rank - array.ndim + 1)
    count = array.shape[0]
    first = [_edges(array[i, ...], edge, rank) for i in range(min(edge, count))]
    last = [_edges(array[i, ...], edge, rank) for i in range(max(edge, count - edge), count)]
    middle = ["..."] if count > 2 * edge else []
    return "[" + gap.join([*first, *middle, *last]) + "]"


def text_of(value: Any, quote: bool) -> str:
    """One element as TF prints it."""
    if isinstance(value, bytes):
        text = "".join(_ESCAPES.get(c, c) for c in value.decode("utf-8", "backslashreplace"))
        return f'"{text}"' if quote else text
    if isinstance(value, str):
        return text_of(value.encode(), quote)
    if isinstance(value, (bool, np.bool_)):
        return "1" if value else "0"
    if isinstance(value, (complex, np.complexfloating)):
        return f"({_number(value.real)},{_number(value.imag)})"
    if isinstance(value, (int, np.integer)):
        return str(int(value))
    return _number(value)


def _number(value: Any) -> str:
    """The fewest of 6, 9 or 17 digits that give the same number back."""
    kind = type(value) if isinstance(value, np.floating) else np.float64
    exact = float(value)
    for digits in (6, 9) if np.dtype(kind).itemsize <= 4 else (15, 17):
        text = f"{exact:.{digits}g}"
        if kind(float(text)) == value or exact != exact:  # noqa: PLR0124 - not a number
            break
    return text


def _host(value: Any) -> Array:
    return np.asarray(value, object) if isinstance(value, (bytes, str)) else np.asarray(value)
