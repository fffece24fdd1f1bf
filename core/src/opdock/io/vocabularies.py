"""Vocabularies: files of one word a line, and the rows of a checkpoint that belong to the words."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from opdock import dtypes, errors
from opdock.io import files

Array = np.ndarray[Any, Any]

__all__ = ["remapped_matrix", "vocabulary_lines", "vocabulary_remapping"]


def _invalid(message: str) -> NoReturn:
    raise errors.InvalidArgumentError(None, None, message)


def vocabulary_lines(path: str, count: int = -1) -> list[bytes]:
    """The lines of a vocabulary, the first `count` of them if it is not negative.

    Raises:
        NotFoundError: there is no such file.
        InvalidArgumentError: it has fewer lines, or an empty one among them.
    """
    lines = files.read_file(path).replace(b"\r", b"").split(b"\n")
    if not lines[-1]:
        lines.pop()
    if count >= 0:
        if len(lines) < count:
            _invalid(f"Invalid vocab_size in {path}: expected {count} but got {len(lines)}")
        lines = lines[:count]
    if b"" in lines:
        at = sum(len(line) + 1 for line in lines[: lines.index(b"") + 1])
        _invalid(f"Invalid content in {path}: empty line found at position {at}.")
    return lines


def vocabulary_remapping(new: str, old: str, offset: int, count: int, old_size: int) -> Array:
    """Where each of some words of a vocabulary is in another.

    Args:
        new: the path of the vocabulary whose words are looked up.
        old: the path of the one where they are looked for.
        offset: the first word.
        count: how many words.
        old_size: how many lines of the old vocabulary count; all if negative.

    Returns:
        int64 line numbers of shape [count], -1 for what the old vocabulary lacks.

    Raises:
        NotFoundError: a file is missing.
        InvalidArgumentError: a name is empty, or the new vocabulary ends before the last word.
    """
    for what, path in (("new", new), ("old", old)):
        if not path:
            _invalid(f"{what} vocab filename cannot be empty.")
    words = vocabulary_lines(new)
    if offset + count > len(words):
        _invalid(
            f"lookup table size must be larger than last new vocab entry's line: {new} has "
            f"{len(words)} lines, asked for are {count} from line {offset} on"
        )
    known: dict[bytes, int] = {}
    for i, word in enumerate(vocabulary_lines(old, old_size)):
        if known.setdefault(word, i) != i:
            _invalid(f"Duplicate word {word!r} in {old}: lines {known[word]} and {i}")
    return np.array([known.get(w, -1) for w in words[offset : offset + count]], np.int64)


def remapped_matrix(
    path: str, name: str, rows: Array, columns: Array, initializing: Array,
    num_rows: int, num_columns: int, rows_in_memory: int = -1,
) -> Array:  # fmt: skip
    """A matrix of a checkpoint with other rows and columns.

    Args:
        path: the checkpoint's prefix.
        name: the name of a float32 matrix in it.
        rows: for each new row, the old one, or a negative number for a new one.
        columns: the same for columns; empty if they stay.
        initializing: the elements that the checkpoint does not give, in their order.
        num_rows: rows of the result.
        num_columns: columns of the result.
        rows_in_memory: the most old rows to read at once; all if not positive.

    Raises:
        NotFoundError: no such checkpoint or tensor.
        InvalidArgumentError: sizes, type or shape do not fit, or `initializing` does not.
        UnimplementedError: an old row or column is wanted twice.
    """
    if rows.size != num_rows:
        _invalid(
            f"Size of row_remapping is {rows.size} instead of being equal to num_rows={num_rows}"
        )
    if columns.size not in (0, num_columns):
        _invalid(
            f"Provided col_remapping, but its size is {columns.size} instead of being equal to "
            f"num_cols={num_columns}"
        )
    for remapping in (rows, columns):
        _check_once(remapping)
    missing = (rows < 0)[:, None] | (
        columns < 0 if columns.size else np.zeros(num_columns, np.bool_)
    )
    wanted = int(np.count_nonzero(missing))
    if initializing.size < wanted:
        _invalid(
            f"initializing_values contained {initializing.size} elements, but more missing values "
            "remain."
        )
    if initializing.size > wanted:
        _invalid(
            f"initializing_values contained {initializing.size} elements, but only {wanted} "
            "elements were used to fill in missing values."
        )
    out = np.empty((num_rows, num_columns), np.float32)
    _copy_rows(out, path, name, rows, columns, rows_in_memory)
    out[missing] = initializing.reshape(-1)
    return out


def _check_once(remapping: Array) -> None:
    first: dict[int, int] = {}
    for new, old in enumerate(remapping.tolist()):
        if old >= 0 and first.setdefault(old, new) != new:
            raise errors.UnimplementedError(
                None,
                None,
                f"Old ID {old} is mapped to both new ID {first[old]} and {new}, which is not "
                "supported.",
            )


def _copy_rows(
    out: Array, path: str, name: str, rows: Array, columns: Array, rows_in_memory: int
) -> None:
    """What the checkpoint has, read in slices from the first row that is wanted to the last."""
    from opdock.io.checkpoint_reader import open_checkpoint
    from opdock.io.tensor_slice import TensorSlice

    with open_checkpoint(path) as reader:
        if name not in reader:
            raise reader.missing(name)
        shape = _checked_shape(name, reader, columns, out.shape[1])
        found = rows[rows >= 0]
        if not found.size:
            return
        low, end = int(found.min()), int(found.max()) + 1
        if end > shape[0]:
            _invalid(f"Tensor {name} has {shape[0]} rows, row_remapping asks for row {end - 1}")
        if columns.size and int(columns.max()) >= shape[1]:
            _invalid(
                f"Tensor {name} has {shape[1]} columns, col_remapping asks for column "
                f"{int(columns.max())}"
            )
        step = rows_in_memory if rows_in_memory > 0 else end - low
        for start in range(low, end, step):
            count = min(step, end - start)
            part = reader.get_slice(name, TensorSlice(((start, count), (0, shape[1]))))
            mine = np.flatnonzero((rows >= start) & (rows < start + count))
            taken = part[rows[mine] - start]
            if not columns.size:
                out[mine] = taken
                continue
            kept = np.flatnonzero(columns >= 0)
            out[np.ix_(mine, kept)] = taken[:, columns[kept]]


def _checked_shape(name: str, reader: Any, columns: Array, num_columns: int) -> tuple[int, ...]:
    dtype, shape = reader.dtype(name), tuple(reader.shape(name))
    shown = "[" + ",".join(map(str, shape)) + "]"
    if dtype.base_dtype is not dtypes.float32:
        _invalid(
            f"Tensor {name} has invalid type {dtypes.proto_name(dtype)} instead of expected type "
            "float"
        )
    if len(shape) != 2:
        _invalid(
            f"Tensor {name} has shape {shown} of invalid rank {len(shape)} instead of expected "
            "shape of rank 2."
        )
    if not columns.size and shape[1] != num_columns:
        _invalid(
            f"Tensor {name} has shape {shown}, where the size of its 2nd dimension is {shape[1]} "
            f"instead of being equal to num_cols={num_columns}"
        )
    return shape
