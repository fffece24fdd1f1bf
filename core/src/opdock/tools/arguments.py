"""Command lines as TensorFlow's tools take them."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from opdock import dtypes
from opdock.dtypes import DType

__all__ = ["add_switch", "listed", "shape_of", "type_of"]

_WORDS = {"true": True, "1": True, "false": False, "0": False}


def add_switch(parser: argparse.ArgumentParser, name: str, default: bool, text: str) -> None:
    """Adds an option that is written `--name`, `--name=true` or `--name=false`."""
    parser.add_argument(
        name, type=_switch, nargs="?", const=True, default=default, metavar="BOOL",
        help=f"{text} (default: {str(default).lower()})",
    )  # fmt: skip


def _switch(text: str) -> bool:
    if text.lower() not in _WORDS:
        raise argparse.ArgumentTypeError(f"{text!r} is neither true nor false")
    return _WORDS[text.lower()]


def listed(text: str) -> list[str]:
    """The words between commas."""
    return [word.strip() for word in text.split(",") if word.strip()]


def shape_of(text: str) -> tuple[int, ...]:
    """A shape: sizes with commas between them; a scalar if there is none.

    Raises:
        argparse.ArgumentTypeError: a size is no number, or negative.
    """
    try:
        sizes = tuple(int(word) for word in listed(text))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no shape such as 1,299,299,3") from None
    if any(size < 0 for size in sizes):
        raise argparse.ArgumentTypeError(
            f"{text!r} has unknown sizes (-1): give the size to benchmark with"
        )
    return sizes


def type_of(text: str) -> DType:
    """A type by name.

    Raises:
        argparse.ArgumentTypeError: there is none.
    """
    try:
        return dtypes.as_dtype(text)
    except TypeError:
        raise argparse.ArgumentTypeError(f"{text!r} is no type such as float or uint8") from None


def split_by(separator: str, one: Any) -> Any:
    """A reader of several values, each read by `one`."""

    def read(text: str) -> Sequence[Any]:
        return [one(part) for part in text.split(separator)] if text else []

    return read
