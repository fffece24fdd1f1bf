"""Frames of pandas as arrays."""

from __future__ import annotations

import sys
from typing import Any

__all__ = ["extract_pandas_data", "extract_pandas_labels", "extract_pandas_matrix"]


def _is_frame(data: Any) -> bool:
    # Whoever has a frame has imported pandas: without it, nothing is one.
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(data, pandas.DataFrame)


def _check(data: Any, what: str) -> None:
    bad = [f"'{name}' type='{d.name}'" for name, d in data.dtypes.items() if d.kind not in "iufb"]
    if bad:
        raise ValueError(f"{what} must be int, float, or bool. Found: {', '.join(bad)}")


def extract_pandas_data(data: Any) -> Any:
    """The numbers of a frame as floats; what is no frame stays as it is.

    Raises:
        ValueError: a column has no numbers.
    """
    if not _is_frame(data):
        return data
    _check(data, "Data types for extracting pandas data")
    return data.values.astype("float")


def extract_pandas_matrix(data: Any) -> Any:
    """The values of a frame; what is no frame stays as it is."""
    return data.values if _is_frame(data) else data


def extract_pandas_labels(labels: Any) -> Any:
    """The values of a frame of one column; what is no frame stays as it is.

    Raises:
        ValueError: there are several columns, or one without numbers.
    """
    if not _is_frame(labels):
        return labels
    if len(labels.columns) > 1:
        raise ValueError("Only one column for labels is allowed.")
    _check(labels, "Data types for extracting labels")
    return labels.values
