"""Selection: which kernel of a device computes a node, and why each of the others does not."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from opdock.dtypes import DType
from opdock.kernels.select.signature import NodeSig
from opdock.kernels.select.table import PORTABLE, Kernel

_log = logging.getLogger("opdock.kernels")

LABEL_ATTR = "_kernel"
"""The node attribute by which a user asks for kernels with a label (TF's name for it)."""


@dataclass(frozen=True, kw_only=True)
class Rejection:
    """Why a kernel, or a whole device, was not taken for a node.

    Attributes:
        reason: the exact reason, e.g. "T is int32; it takes float32, float64".
        device: the device's name, when known.
        kernel: where the kernel's code lives; empty when no kernel was looked at.
        plugin: the plugin that brought the kernel.
    """

    reason: str
    device: str = ""
    kernel: str = ""
    plugin: str = ""

    def __str__(self) -> str:
        where = " ".join(part for part in (self.device, self.kernel) if part)
        return f"{where}: {self.reason}" if where else self.reason


@dataclass(frozen=True, slots=True)
class Entry:
    """A kernel with its origin: the plugin's name and distribution, and its place in the order."""

    kernel: Kernel
    plugin: str = ""
    distribution: str = ""
    order: int = 0

    @property
    def rank(self) -> tuple[Any, ...]:
        """Sort key, best first, among kernels that admit a node for which no label is asked."""
        k = self.kernel
        return (k.is_portable, -k.priority, -k.specificity, self.order)


@dataclass(frozen=True)
class Selection:
    """The outcome for one node on one device.

    Attributes:
        chosen: the best kernel, or None.
        alternatives: kernels that admit the node too, in order, for when the first declines.
        rejections: why each of the others does not.
    """

    chosen: Entry | None
    alternatives: tuple[Entry, ...] = ()
    rejections: tuple[Rejection, ...] = ()

    @property
    def kernel(self) -> Kernel | None:
        """The chosen kernel's record."""
        return None if self.chosen is None else self.chosen.kernel


@dataclass(frozen=True)
class Tie:
    """Two plugins' kernels that nothing but the order of plugins tells apart."""

    op: str
    kept: Entry
    lost: Entry

    def __str__(self) -> str:
        return (
            f"{self.op}: {self.kept.kernel.qualname} ({self.kept.plugin}) and "
            f"{self.lost.kernel.qualname} ({self.lost.plugin}) have the same priority; "
            "the first is used"
        )


@dataclass
class KernelIndex:
    """All kernels of one device by op type, each list ranked once."""

    _by_op: dict[str, list[Entry]] = field(default_factory=dict)
    _count: int = 0

    def add(self, kernels: Iterable[Kernel], plugin: str = "", distribution: str = "") -> None:
        """Adds a table's kernels behind those of the tables added before."""
        touched = set()
        for kernel in kernels:
            entry = Entry(kernel, plugin, distribution, self._count)
            self._count += 1
            self._by_op.setdefault(kernel.op, []).append(entry)
            touched.add(kernel.op)
        for op in touched:
            self._by_op[op].sort(key=lambda e: e.rank)

    def entries(self, op: str) -> list[Entry]:
        """The ranked kernels for an op type."""
        return self._by_op.get(op, [])

    def ops(self) -> list[str]:
        """The op types that have any kernel, sorted."""
        return sorted(self._by_op)

    def __contains__(self, op: object) -> bool:
        return op in self._by_op

    def __iter__(self) -> Iterator[Entry]:
        for op in self.ops():
            yield from self._by_op[op]

    def __len__(self) -> int:
        return self._count

    def ties(self) -> list[Tie]:
        """Pairs of kernels from different plugins that only the order of plugins tells apart."""
        found = []
        for entries in self._by_op.values():
            for i, first in enumerate(entries):
                for second in entries[i + 1 :]:
                    if first.plugin != second.plugin and _indistinct(first.kernel, second.kernel):
                        found.append(Tie(first.kernel.op, first, second))
        return found


def _indistinct(a: Kernel, b: Kernel) -> bool:
    if (a.label, a.priority, a.specificity) != (b.label, b.priority, b.specificity):
        return False
    return all(types & b.dtypes[attr] for attr, types in a.dtypes.items() if attr in b.dtypes)


def select(sig: NodeSig, index: KernelIndex, device: str = "") -> Selection:
    """Ranks the kernels of one device for a node.

    Args:
        sig: the node.
        index: the device's kernels.
        device: the device's name, for the rejections.

    Returns:
        The choice, the runners-up and a reason for everyone who is neither. Never raises: a kernel
        whose `when` fails is rejected with what it raised.
    """
    wanted = sig.attrs.get(LABEL_ATTR) or ""
    admitted: list[Entry] = []
    rejections: list[Rejection] = []
    for entry in index.entries(sig.op):
        reason = _reject(entry.kernel, sig, wanted)
        if not reason:
            admitted.append(entry)
        else:
            rejections.append(
                Rejection(
                    reason=reason, device=device, kernel=entry.kernel.qualname, plugin=entry.plugin
                )
            )
    if not admitted and not rejections:
        rejections.append(Rejection(reason=f"no kernel for {sig.op}", device=device))
    if not admitted:
        return Selection(None, (), tuple(rejections))
    return Selection(admitted[0], tuple(admitted[1:]), tuple(rejections))


def _reject(kernel: Kernel, sig: NodeSig, wanted: str) -> str:
    """The reason why the kernel cannot take the node; empty when it can."""
    if kernel.label != wanted and (wanted or kernel.label != PORTABLE):
        if wanted:
            own = f"label {kernel.label!r}" if kernel.label else "no label"
            return f"the node asks for label {wanted!r}; it has {own}"
        return f"it is used only on request ({LABEL_ATTR}={kernel.label!r})"
    for attr, admitted in kernel.dtypes.items():
        reason = _reject_type(attr, admitted, sig.attrs)
        if reason:
            return reason
    if kernel.refused or kernel.when is None:
        return kernel.refused
    try:
        verdict = kernel.when(sig)
    except Exception as e:
        _log.exception("when() of kernel %s failed on %s", kernel.qualname, sig)
        return f"its when() raised {type(e).__name__}: {e}"
    if verdict is True:
        return ""
    return verdict if isinstance(verdict, str) and verdict else "it declines this node"


def _reject_type(attr: str, admitted: frozenset[DType], attrs: Mapping[str, Any]) -> str:
    value = attrs.get(attr)
    if isinstance(value, DType):
        if value.base_dtype in admitted:
            return ""
        shown = value.base_dtype.name
    elif isinstance(value, (list, tuple)):
        wrong = [t for t in value if getattr(t, "base_dtype", t) not in admitted]
        if not wrong:
            return ""
        shown = ", ".join(getattr(t, "name", str(t)) for t in wrong)
    elif value is None:
        return f"it constrains {attr}, which the node does not have"
    else:
        return f"it constrains {attr}, which is no type attribute"
    return f"{attr} is {shown}; it takes {', '.join(sorted(t.name for t in admitted))}"
