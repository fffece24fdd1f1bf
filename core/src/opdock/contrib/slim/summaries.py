"""Summaries of tensors by their names, which can be printed as well."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from opdock.graph.nodes.collections import GraphKeys, add_to_collection
from opdock.ops.composed.moments import zero_fraction
from opdock.ops.printing import Print
from opdock.ops.summary import histogram, image, scalar

__all__ = [
    "add_histogram_summaries", "add_histogram_summary", "add_image_summaries",
    "add_image_summary", "add_scalar_summaries", "add_scalar_summary",
    "add_zero_fraction_summaries", "add_zero_fraction_summary",
]  # fmt: skip


def _title(tensor: Any, name: str | None, prefix: str | None, last: str | None = None) -> str:
    return "/".join(part for part in (prefix, name or tensor.op.name, last) if part)


def _made(kind: Any, title: str, tensor: Any, print_summary: bool) -> Any:
    if not print_summary:
        return kind(title, tensor)
    printed = Print(kind(title, tensor, collections=[]), [tensor], title)
    add_to_collection(GraphKeys.SUMMARIES, printed)
    return printed


def add_histogram_summary(tensor: Any, name: str | None = None, prefix: str | None = None) -> Any:
    """A histogram.

    Args:
        tensor: the tensor.
        name: the summary's; the tensor's if None.
        prefix: what stands before the name, or None.
    """
    return histogram(_title(tensor, name, prefix), tensor)


def add_image_summary(
    tensor: Any, name: str | None = None, prefix: str | None = None, print_summary: bool = False
) -> Any:
    """Images; see `add_scalar_summary`."""

    def images(title: str, tensor: Any, collections: Any = None) -> Any:
        return image(title, tensor, collections=collections)

    return _made(images, _title(tensor, name, prefix), tensor, print_summary)


def add_scalar_summary(
    tensor: Any, name: str | None = None, prefix: str | None = None, print_summary: bool = False
) -> Any:
    """A number.

    Args:
        tensor: the tensor.
        name: the summary's; the tensor's if None.
        prefix: what stands before the name, or None.
        print_summary: whether the tensor is printed when the summary is made.
    """
    return _made(scalar, _title(tensor, name, prefix), tensor, print_summary)


def add_zero_fraction_summary(
    tensor: Any, name: str | None = None, prefix: str | None = None, print_summary: bool = False
) -> Any:
    """What part of a tensor is 0; see `add_scalar_summary`."""
    title = _title(tensor, name, prefix, "Fraction_of_Zero_Values")
    return _made(scalar, title, zero_fraction(tensor), print_summary)


def add_histogram_summaries(tensors: Iterable[Any], prefix: str | None = None) -> list[Any]:
    """A histogram of each tensor."""
    return [add_histogram_summary(tensor, prefix=prefix) for tensor in tensors]


def add_image_summaries(tensors: Iterable[Any], prefix: str | None = None) -> list[Any]:
    """Images of each tensor."""
    return [add_image_summary(tensor, prefix=prefix) for tensor in tensors]


def add_scalar_summaries(
    tensors: Iterable[Any], prefix: str | None = None, print_summary: bool = False
) -> list[Any]:
    """A number of each tensor."""
    return [add_scalar_summary(t, prefix=prefix, print_summary=print_summary) for t in tensors]


def add_zero_fraction_summaries(tensors: Iterable[Any], prefix: str | None = None) -> list[Any]:
    """What part of each tensor is 0."""
    return [add_zero_fraction_summary(tensor, prefix=prefix) for tensor in tensors]
