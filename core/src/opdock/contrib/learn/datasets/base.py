"""`tf.contrib.learn.datasets.base`: tables of numbers in CSV files, two of which are here."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any, Final

import numpy as np

from opdock import errors
from opdock.api.gfile import GFile
from opdock.examples.tutorials.mnist.input_data import Dataset, Datasets, maybe_download

__all__ = [
    "Dataset", "Datasets", "load_boston", "load_csv_with_header", "load_csv_without_header",
    "load_iris", "maybe_download", "shrink_csv",
]  # fmt: skip

_DATA: Final = Path(__file__).parent / "data"


def load_csv_with_header(
    filename: Any, target_dtype: Any, features_dtype: Any, target_column: int = -1
) -> Dataset:
    """The table of a CSV file, whose first row says how many rows and features follow.

    Args:
        filename: the file.
        target_dtype, features_dtype: NumPy's types of targets and of features.
        target_column: which column has the targets.

    Raises:
        InvalidArgumentError: it has another number of rows or features, or a cell is no number.
    """
    with GFile(str(filename)) as file:
        rows = csv.reader(file)
        head = next(rows, [])
        try:
            counts = int(head[0]), int(head[1])
        except (ValueError, IndexError):
            raise errors.InvalidArgumentError(
                None, None,
                f"{filename}: the first row is to begin with the numbers of rows and features, "
                f"and is {','.join(head)!r}",
            ) from None  # fmt: skip
        made = _dataset(filename, rows, target_dtype, features_dtype, target_column)
    if made.data.shape != counts:
        raise errors.InvalidArgumentError(
            None, None,
            f"{filename}: the first row tells of {counts[0]} rows of {counts[1]} features, and "
            f"there are {' of '.join(map(str, made.data.shape))}",
        )  # fmt: skip
    return made


def load_csv_without_header(
    filename: Any, target_dtype: Any, features_dtype: Any, target_column: int = -1
) -> Dataset:
    """The table of a CSV file; see `load_csv_with_header`.

    Raises:
        InvalidArgumentError: rows are not equally long, or a cell is no number.
    """
    with GFile(str(filename)) as file:
        return _dataset(filename, csv.reader(file), target_dtype, features_dtype, target_column)


def _dataset(
    filename: Any, rows: Any, target_dtype: Any, features_dtype: Any, target_column: int
) -> Dataset:
    data, target = [], []
    for cells in rows:
        try:
            target.append(np.asarray(cells.pop(target_column), target_dtype))
            data.append(np.asarray(cells, features_dtype))
        except (ValueError, IndexError) as e:
            raise errors.InvalidArgumentError(
                None, None, f"{filename}, line {rows.line_num}: {e}"
            ) from None
        if len(data[-1]) != len(data[0]):
            raise errors.InvalidArgumentError(
                None, None,
                f"{filename}, line {rows.line_num}: {len(data[-1])} features, and {len(data[0])} "
                "in the first line",
            )  # fmt: skip
    return Dataset(data=np.array(data, features_dtype), target=np.array(target, target_dtype))


def shrink_csv(filename: str, ratio: int) -> None:
    """Writes every so many-th row of a CSV file to one with `_small` in its name."""
    with GFile(filename) as file, GFile(filename.replace(".", "_small."), "w") as small:
        out = csv.writer(small)
        for i, row in enumerate(csv.reader(file)):
            if i % ratio == 0:
                out.writerow(row)


def load_iris(data_path: Any = None) -> Dataset:
    """Fisher's irises: four measures of 150 flowers, of three kinds.

    Args:
        data_path: another file of such a table.
    """
    return load_csv_with_header(data_path or _DATA / "iris.csv", np.int64, np.float64)


def load_boston(data_path: Any = None) -> Dataset:
    """What houses cost in 506 parts of Boston in 1970, with 13 features of each part.

    Args:
        data_path: another file of such a table.
    """
    return load_csv_with_header(
        data_path or _DATA / "boston_house_prices.csv", np.float64, np.float64
    )
