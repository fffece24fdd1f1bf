"""Portable kernels: written once on the Python array API, mounted by any backend that has one.

A family module registers binders that also get the array namespace:

    @portable("MatrixTranspose", T=FLOATS)
    def transpose(xp, sig):
        return lambda x: xp.matrix_transpose(x)

They use nothing beyond the array API standard 2023.12, so the same kernel runs on every namespace.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import itertools
import pkgutil
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeVar

from opdock.dtypes import DType
from opdock.kernels.select.restrict import restrict, without_types
from opdock.kernels.select.signature import NodeSig
from opdock.kernels.select.table import PORTABLE, Kernel, KernelTable, split_fields

_F = TypeVar("_F", bound=Callable[..., Any])

PRIORITY: Final = -100
"""Below whatever a backend brings itself; selection ranks portable kernels last in any case."""

Exclusion = str | Mapping[DType, str] | Callable[[NodeSig], bool | str]
"""Why a device does without a kernel: always, for element types, or for a node (True: it will do).
"""


@dataclasses.dataclass(frozen=True)
class _Use:
    """What a binder was registered for: fields of the kernel's record, and what it calls."""

    op: str
    fields: Mapping[str, Any]
    extension: str


_registry: dict[Callable[..., Any], list[_Use]] = {}
_mounted: dict[tuple[Any, ...], tuple[Any, KernelTable]] = {}


def portable(*ops: str, extension: str = "", **options: Any) -> Callable[[_F], _F]:
    """Decorator for a binder `bind(xp, sig)` that works on every array namespace.

    Args:
        *ops: the op types it computes.
        extension: the optional part of the standard that it calls, "linalg" or "fft": a device
            whose namespace has none does without the kernel.
        **options: `Kernel` fields (`when`, `out`, `host_inputs`, `may_alias`, ...); any other
            keyword constrains the type attribute of that name.
    """
    if not ops:
        raise TypeError("name at least one op type")
    record = {"priority": PRIORITY, **split_fields(options), "label": PORTABLE}

    def attach(function: _F) -> _F:
        _registry.setdefault(function, []).extend(_Use(op, record, extension) for op in ops)
        _mounted.clear()  # devices that open from now on have the kernel too
        return function

    return attach


def mount(
    xp: Any, dtypes: Iterable[DType] | None = None, without: Mapping[str, Exclusion] | None = None
) -> KernelTable:
    """All portable kernels over one array namespace.

    Args:
        xp: a namespace that follows the array API standard, e.g. `array_api_compat.numpy`.
        dtypes: the element types that the device's arrays can hold; None for all. The
            kernels' constraints are narrowed to them; arguments in host memory may have any type.
        without: by op type, why the device does without the kernel: a reason; reasons by element
            type; or, for what depends on shapes and attributes, a function that gives True or a
            reason, as `when` does. The kernels stay in the table with their reasons.

    Returns:
        A table shared by all devices that mount the same namespace with the same types.

    Raises:
        ValueError: `without` names an op that has no portable kernel.
        TypeError: what it says of an op is none of these.
    """
    allowed = None if dtypes is None else frozenset(dtypes)
    refusals = dict(without or {})
    key = (id(xp), allowed, frozenset((op, _hashable(why)) for op, why in refusals.items()))
    found = _mounted.get(key)
    if found is None:
        # The namespace is kept beside the table: an id may be reused once its object is gone.
        kernels = list(_kernels(xp, allowed))
        unknown = refusals.keys() - {k.op for k in kernels}
        if unknown:
            raise ValueError(f"there is no portable kernel of {min(unknown)} to do without")
        left = (_refused(k, refusals[k.op]) if k.op in refusals else (k,) for k in kernels)
        found = _mounted[key] = (xp, KernelTable(itertools.chain.from_iterable(left)))
    return found[1]


def _hashable(why: Exclusion) -> Any:
    return frozenset(why.items()) if isinstance(why, Mapping) else why


def _refused(kernel: Kernel, why: Exclusion) -> Iterable[Kernel]:
    """What becomes of the kernel of a device that does without it, sometimes or always."""
    if isinstance(why, str) and why:
        return (dataclasses.replace(kernel, refused=why),)
    if isinstance(why, Mapping):
        return without_types(kernel, why)
    if not callable(why):
        raise TypeError(f"{kernel.op} needs a reason or a function to be refused, got {why!r}")
    own = kernel.when

    def when(sig: NodeSig) -> bool | str:
        verdict = why(sig)
        return own(sig) if verdict is True and own is not None else verdict

    return (dataclasses.replace(kernel, when=when),)


def family(
    name: str, namespace: Callable[[NodeSig], Any], dtypes: Iterable[DType]
) -> Iterable[Kernel]:
    """The kernels of one family as a backend's own, for those that hardly touch elements.

    Args:
        name: the family's module.
        namespace: gives the functions that the family uses, for the device of a node.
        dtypes: the element types that the device's arrays can hold.
    """
    allowed = frozenset(dtypes)
    _load_families()
    for function, uses in list(_registry.items()):
        if function.__module__ != f"{__name__}.{name}":
            continue
        bind = functools.update_wrapper(
            functools.partial(_bind_over, function, namespace), function
        )
        for use in uses:
            kernel = Kernel(op=use.op, bind=bind, **{**use.fields, "label": "", "priority": 0})
            narrowed = restrict(kernel, allowed)
            if narrowed is not None:
                yield narrowed


def _bind_over(function: Any, namespace: Callable[[NodeSig], Any], sig: NodeSig) -> Any:
    return function(namespace(sig), sig)


def _kernels(xp: Any, allowed: frozenset[DType] | None) -> Iterable[Kernel]:
    found = [_labelled(k) for m in _load_families() for k in _elementwise(m, xp)]
    for function, uses in _registry.items():
        bind = functools.partial(function, xp)
        for use in uses:
            lacks = bool(use.extension) and not hasattr(xp, use.extension)
            why = f"the namespace has no {use.extension}" if lacks else ""
            found.append(Kernel(op=use.op, bind=bind, refused=why, **use.fields))
    if allowed is None:
        return found
    # Narrowing may make a general kernel look as specific as a special one, so order decides.
    found.sort(key=lambda k: -k.specificity)
    narrowed = (restrict(kernel, allowed) for kernel in found)
    return [kernel for kernel in narrowed if kernel is not None]


def _elementwise(module: Any, xp: Any) -> Iterable[Kernel]:
    make = getattr(module, "elementwise_kernels", None)
    return () if make is None else make(xp)


@functools.cache
def _load_families() -> tuple[Any, ...]:
    names = sorted(m.name for m in pkgutil.iter_modules(__path__))
    return tuple(importlib.import_module(f"{__name__}.{name}") for name in names)


def _labelled(kernel: Kernel) -> Kernel:
    if kernel.label == PORTABLE:
        return kernel
    priority = min(kernel.priority, PRIORITY)
    return dataclasses.replace(kernel, label=PORTABLE, priority=priority)
