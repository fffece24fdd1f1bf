"""The array API over PyTorch as core's portable kernels need it, one namespace a device."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import array_api_compat.torch as compat
import numpy as np
import torch

from opdock.plugin import dtypes


def tensor_of(array: np.ndarray[Any, Any]) -> torch.Tensor:
    """A host array as a CPU tensor over the same memory."""
    if array.dtype == dtypes.bfloat16.np:
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


class Unique(NamedTuple):
    """What `unique_all` gives."""

    values: torch.Tensor
    indices: torch.Tensor
    inverse_indices: torch.Tensor
    counts: torch.Tensor


class Namespace:
    """`array_api_compat.torch`, with new arrays on one device rather than on the CPU."""

    def __init__(self, place: torch.device) -> None:
        self._place = place
        for name in ("arange", "empty", "eye", "full", "linspace", "ones", "zeros"):
            setattr(self, name, functools.partial(self._make, getattr(compat, name)))

    def __getattr__(self, name: str) -> Any:
        return getattr(compat, name)

    def _make(self, maker: Any, *args: Any, device: Any = None, **options: Any) -> torch.Tensor:
        made: torch.Tensor = maker(*args, device=device or self._place, **options)
        return made

    def asarray(
        self, value: Any, dtype: Any = None, device: Any = None, copy: Any = None
    ) -> torch.Tensor:
        """A tensor; NumPy arrays are copied, as they may change."""
        if isinstance(value, torch.Tensor):
            return torch.asarray(value, dtype=dtype, device=device, copy=copy)
        if isinstance(value, (np.ndarray, np.generic)):
            value = tensor_of(np.array(value, order="C"))
        return torch.asarray(value, dtype=dtype, device=device or self._place)

    def unique_all(self, x: torch.Tensor) -> Unique:
        """The different values, where each stands first, which each element is, and counts."""
        flat = torch.view_as_real(x.reshape(-1)) if x.is_complex() else x.reshape(-1)
        values, inverse, counts = flat.unique(dim=0, return_inverse=True, return_counts=True)
        places = torch.arange(len(flat), device=x.device)
        first = torch.full_like(counts, len(flat)).scatter_reduce_(0, inverse, places, "amin")
        values = torch.view_as_complex(values) if x.is_complex() else values
        return Unique(values, first, inverse.reshape(x.shape), counts)

    unique_inverse = unique_all


@functools.cache
def namespace_for(place: torch.device) -> Namespace:
    """The device's namespace, always the same object: core keeps a table of kernels for each."""
    return Namespace(place)
