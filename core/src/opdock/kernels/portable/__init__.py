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
import pkgutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, TypeVar

from opdock.dtypes import DType
from opdock.graph.nodes import registry
from opdock.kernels import _portable
from opdock.kernels.select.restrict import restrict, without_types
from opdock.kernels.select.signature import NodeSig
from opdock.kernels.select.table import PORTABLE, Kernel, KernelTable, split_fields

_F = TypeVar("_F", bound=Callable[..., Any])

ELEMENTWISE: Final = "elementwise"
"""The module that makes kernels of scalar expressions."""

PRIORITY: Final = -100
"""Below whatever a backend brings itself; selection ranks portable kernels last in any case."""

Exclusion = str | Mapping[DType, str] | Callable[[NodeSig], bool | str]
"""Why a device does without a kernel: always, for element types, or for a node (True: it will do).
"""


@dataclasses.dataclass(frozen=True)
class _Use:
    """What a binder was registered for: fields of the kernel's record, and what it calls."""

    bind: Callable[..., Any]
    fields: Mapping[str, Any]
    extension: str


_registry: dict[str, list[_Use]] = {}
_mounted: dict[tuple[Any, ...], tuple[Any, MountedTable]] = {}


def portable(*ops: str, extension: str = "", **options: Any) -> Callable[[_F], _F]:
    """Decorator for a binder `bind(xp, sig)` that works on every array namespace.

    Args:
        *ops: the op types it computes.
        extension: the optional part of the standard that it calls, "linalg" or "fft", or a function
            beyond it: a device whose namespace has none does without the kernel.
        **options: `Kernel` fields (`when`, `out`, `host_inputs`, `may_alias`, ...); any other
            keyword constrains the type attribute of that name.
    """
    if not ops:
        raise TypeError("name at least one op type")
    record = {"priority": PRIORITY, **split_fields(options), "label": PORTABLE}

    def attach(function: _F) -> _F:
        for op in ops:
            _registry.setdefault(op, []).append(_Use(function, record, extension))
            for _xp, table in _mounted.values():
                table.forget(op)  # devices that open from now on have the kernel too
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
        for op, why in refusals.items():
            _check_refusal(op, why)
        table = MountedTable(xp, allowed, refusals)
        unknown = refusals.keys() - set(table.ops())
        if unknown:
            raise ValueError(f"there is no portable kernel of {min(unknown)} to do without")
        # The namespace is kept beside the table: an id may be reused once its object is gone.
        found = _mounted.setdefault(key, (xp, table))
    return found[1]


class MountedTable(KernelTable):
    """The portable kernels over one array namespace; an op's are loaded when it is asked for.

    Args:
        xp: the namespace.
        allowed: the element types that the device's arrays can hold; None for all.
        refusals: by op type, why the device does without the kernel.
    """

    def __init__(
        self, xp: Any, allowed: frozenset[DType] | None, refusals: Mapping[str, Exclusion]
    ) -> None:
        super().__init__()
        self._xp = xp
        self._allowed = allowed
        self._refusals = refusals
        self._found: dict[str, tuple[Kernel, ...]] = {}

    def for_op(self, op: str) -> tuple[Kernel, ...]:
        """The kernels for one op type."""
        found = self._found.get(op)
        if found is None:
            # Two threads that come at once get the same records.
            found = self._found.setdefault(op, tuple(self._made(op)))
        return found

    def _made(self, op: str) -> Iterator[Kernel]:
        for kernel in _kernels(op, self._xp, self._allowed):
            if op in self._refusals:
                yield from _refused(kernel, self._refusals[op])
            else:
                yield kernel

    def forget(self, op: str) -> None:
        """Has the kernels for an op made anew when they are asked for again."""
        self._found.pop(op, None)

    def ops(self) -> list[str]:
        """The op types that may have a kernel here, sorted; loads none."""
        expressed = (spec.name for spec in registry.known_ops() if spec.expr is not None)
        return sorted({*_homes(), *_registry, *expressed})

    def __iter__(self) -> Iterator[Kernel]:
        for op in self.ops():
            yield from self.for_op(op)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __repr__(self) -> str:
        return f"<MountedTable over {self._xp!r}>"


def _hashable(why: Exclusion) -> Any:
    return frozenset(why.items()) if isinstance(why, Mapping) else why


def _check_refusal(op: str, why: Any) -> None:
    if not (isinstance(why, Mapping) or callable(why) or (isinstance(why, str) and why)):
        raise TypeError(f"{op} needs a reason or a function to be refused, got {why!r}")


def _refused(kernel: Kernel, why: Exclusion) -> Iterable[Kernel]:
    """What becomes of the kernel of a device that does without it, sometimes or always."""
    if isinstance(why, str):
        return (dataclasses.replace(kernel, refused=why),)
    if isinstance(why, Mapping):
        return without_types(kernel, why)
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
    module = _load(name).__name__
    for op, uses in list(_registry.items()):
        for use in uses:
            if use.bind.__module__ != module:
                continue
            bind = functools.update_wrapper(
                functools.partial(_bind_over, use.bind, namespace), use.bind
            )
            kernel = Kernel(op=op, bind=bind, **{**use.fields, "label": "", "priority": 0})
            narrowed = restrict(kernel, allowed)
            if narrowed is not None:
                yield narrowed


def _bind_over(function: Any, namespace: Callable[[NodeSig], Any], sig: NodeSig) -> Any:
    return function(namespace(sig), sig)


def _kernel(op: str, use: _Use, xp: Any) -> Kernel:
    lacks = bool(use.extension) and not hasattr(xp, use.extension)
    why = f"the namespace has no {use.extension}" if lacks else ""
    return Kernel(op=op, bind=_over(xp, use.bind), refused=why, **use.fields)


def _kernels(op: str, xp: Any, allowed: frozenset[DType] | None) -> Iterable[Kernel]:
    for name in _homes().get(op, ()):
        _load(name)
    found = [_kernel(op, use, xp) for use in _registry.get(op, ())]
    spec = registry.find(op)
    if spec is not None and spec.expr is not None:
        made = _load(ELEMENTWISE).elementwise_kernel(spec, xp)
        found = found if made is None else [_labelled(made), *found]
    if allowed is None:
        return found
    # Narrowing may make a general kernel look as specific as a special one, so order decides.
    found.sort(key=lambda k: -k.specificity)
    narrowed = (restrict(kernel, allowed) for kernel in found)
    return [kernel for kernel in narrowed if kernel is not None]


def _over(xp: Any, function: Callable[..., Any]) -> Any:
    return functools.partial(function, xp)


@functools.cache
def _homes() -> Mapping[str, tuple[str, ...]]:
    """Op type -> the modules here that have kernels of it, in order."""
    found: dict[str, tuple[str, ...]] = {}
    for module, ops in _portable.PORTABLE.items():
        for op in ops.split():
            found[op] = (*found.get(op, ()), module)
    return found


def _load(name: str) -> Any:
    """Imports a module of kernels; one that is interrupted registers nothing."""
    try:
        return importlib.import_module(f"{__name__}.{name}")
    except BaseException:
        for uses in _registry.values():
            uses[:] = [use for use in uses if use.bind.__module__ in sys.modules]
        raise


def load_families() -> tuple[Any, ...]:
    """All modules of kernels, in order."""
    return tuple(_load(m.name) for m in pkgutil.iter_modules(__path__))


def _labelled(kernel: Kernel) -> Kernel:
    if kernel.label == PORTABLE:
        return kernel
    priority = min(kernel.priority, PRIORITY)
    return dataclasses.replace(kernel, label=PORTABLE, priority=priority)
