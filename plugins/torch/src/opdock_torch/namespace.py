"""The array API over PyTorch as core's portable kernels need it, one namespace a device."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import MappingProxyType
from typing import Any, NamedTuple

import array_api_compat.torch as compat
import numpy as np
import torch

from opdock.plugin import dtypes

_FOLDS = {compat.multiply: "prod", compat.maximum: "amax", compat.minimum: "amin"}


def tensor_of(array: np.ndarray[Any, Any]) -> torch.Tensor:
    """A host array as a CPU tensor over the same memory."""
    if array.dtype == dtypes.bfloat16.np:
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def array_of(tensor: torch.Tensor) -> np.ndarray[Any, Any]:
    """A CPU tensor as a host array over the same memory."""
    halves = tensor.dtype is torch.bfloat16
    found: np.ndarray[Any, Any] = (tensor.view(torch.int16) if halves else tensor).numpy()
    return found.view(dtypes.bfloat16.np) if halves else found


class Unique(NamedTuple):
    """What `unique_all` gives."""

    values: torch.Tensor
    indices: torch.Tensor
    inverse_indices: torch.Tensor
    counts: torch.Tensor


def _of_positive(gamma: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """An incomplete gamma function that is NaN for a = 0, as TensorFlow's are."""
    return lambda a, x: torch.where(a > 0, gamma(a, x), torch.nan)


_SPECIAL = {
    "digamma": lambda x: torch.where(x == 0, torch.nan, torch.digamma(x)),
    **{name: getattr(torch, name) for name in ("erf", "erfc", "erfinv", "lgamma")},
    "igamma": _of_positive(torch.special.gammainc),
    "igammac": _of_positive(torch.special.gammaincc),
}


class Namespace:
    """`array_api_compat.torch`, with new arrays on one device rather than on the CPU.

    `torch.conj` gives a view, and the standard's `take` looks for places from the end, of which
    core has none. PyTorch refuses those outside an array, but not on accelerators or while tracing.
    """

    special_functions = MappingProxyType(_SPECIAL)

    conj = staticmethod(torch.conj_physical)
    log_softmax = staticmethod(functools.partial(torch.log_softmax, dim=-1))
    take = staticmethod(lambda x, indices, axis: torch.index_select(x, axis, indices))
    take_checks = staticmethod(lambda x: type(x) is torch.Tensor and x.is_cpu)

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
            if copy and dtype in (None, value.dtype) and device in (None, value.device):
                # A copy of a transposed tensor would lie as that does.
                return value.clone(memory_format=torch.contiguous_format)
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

    def top_k(self, x: torch.Tensor, k: int) -> tuple[torch.Tensor, torch.Tensor]:
        """The largest of each row; `torch.topk` gives equal ones and NaN in any order."""
        if self.take_checks(x):
            values, places = torch.topk(x, min(k + 1, x.shape[-1]))
            if (values[..., :-1] > values[..., 1:]).all():
                return values[..., :k].contiguous(), places[..., :k].contiguous()
        values, places = torch.sort(x, dim=-1, descending=True, stable=True)
        return values[..., :k].contiguous(), places[..., :k].contiguous()

    def bitcast(self, flat: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
        """The memory of a vector as elements of another type."""
        return flat.contiguous().view(dtype)

    def fold_rows(self, combine: Any, rows: Any, ids: Any, count: int) -> Any:
        """The rows of each id in one, and which ids there are; negative ones are left out."""
        if combine is not compat.add and (combine not in _FOLDS or rows.is_complex()):
            return None
        if combine is compat.add and self.take_checks(rows):
            try:
                return rows.new_zeros((count, rows.shape[1])).index_add_(0, ids, rows), None
            except RuntimeError:  # of one that is negative, or too large
                if int(ids.max()) >= count:
                    raise
        ids = torch.where(ids < 0, count, ids)  # a row more, which nobody gets
        out, present = rows.new_zeros((count + 1, rows.shape[1])), ids.new_zeros(count + 1)
        if combine is compat.add:
            out.index_add_(0, ids, rows)
        else:
            at, how = ids[:, None].expand_as(rows), _FOLDS[combine]
            out.scatter_reduce_(0, at, rows, how, include_self=False)
        return out[:count], present.index_fill_(0, ids, 1)[:count] == 1


@functools.cache
def namespace_for(place: torch.device) -> Namespace:
    """The device's namespace, always the same object: core keeps a table of kernels for each."""
    return Namespace(place)
