"""Selection: which kernel of a device computes a node, and why each of the others does not."""

from __future__ import annotations

import logging
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import field
from typing import Any, Final, cast

import numpy as np

from opdock.dtypes import DType
from opdock.failures import failures
from opdock.kernels.select.siblings import sibling_hint
from opdock.kernels.select.signature import NodeSig
from opdock.kernels.select.table import PORTABLE, Kernel, Kernels, KernelTable
from opdock.late import record

_log = logging.getLogger("opdock.kernels")

CORE: Final = "core"
"""What stands for core among the plugins: its kernels have a label, so they tie with none."""

LABEL_ATTR = "_kernel"
"""The node attribute by which a user asks for kernels with a label (TF's name for it)."""


@record(frozen=True, kw_only=True)
class Rejection:
    """Why a kernel, or a whole device, was not taken for a node.

    Attributes:
        reason: the exact reason, e.g. "T is int32; it takes float32, float64".
        device: the device's name, when known.
        kernel: where the kernel's code lives; empty when no kernel was looked at.
        plugin: the plugin that brought the kernel.
        fault: whether the kernel is to blame: its `when` raised, or gave no answer.
    """

    reason: str
    device: str = ""
    kernel: str = ""
    plugin: str = ""
    fault: bool = False

    def __str__(self) -> str:
        by = f"of plugin {self.plugin!r}" if self.kernel and self.plugin else ""
        where = " ".join(part for part in (self.device, self.kernel, by) if part)
        return f"{where}: {self.reason}" if where else self.reason


@record(frozen=True, slots=True)
class Entry:
    """A kernel with its origin: the plugin's name and distribution, and its place in the order.

    Attributes:
        kernel: the record.
        plugin, distribution: who brought the record.
        order: its place among the device's kernels.
        guest: whether neither the op is the plugin's nor the backend admits it: it computes what
            nothing else does.
        taken_from: the plugin whose code the record runs, if that is another: a record that was
            taken over, say by `dataclasses.replace`.
    """

    kernel: Kernel
    plugin: str = ""
    distribution: str = ""
    order: int = 0
    guest: bool = False
    taken_from: str = ""

    def __str__(self) -> str:
        dist = f" ({self.distribution})" if self.distribution else ""
        taken = f", taken over from {self.taken_from!r}" if self.taken_from else ""
        return f"kernel {self.kernel.qualname} of plugin {self.plugin!r}{dist}{taken}"

    @property
    def rank(self) -> tuple[Any, ...]:
        """Sort key, best first, among kernels that admit a node for which no label is asked."""
        k = self.kernel
        return (self.guest, k.is_portable, -k.priority, -k.specificity, self.order)


@record(frozen=True)
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


@record(frozen=True)
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


@record(frozen=True, slots=True)
class Judged:
    """What labels and types say of an op's kernels, best first.

    Attributes:
        found: each kernel that they admit, and for each of the others why not.
        settled: the outcome, if no kernel that is left asks for more.
    """

    found: tuple[Entry | Rejection, ...]
    settled: Selection | None


@record(frozen=True, slots=True)
class _Source:
    """A table among a device's, with where it comes from; `guest` answers for an op type."""

    kernels: Kernels
    plugin: str
    distribution: str
    guest: Callable[[str], bool]
    taken_from: Callable[[Kernel], str]


def _as_table(kernels: Kernels | Iterable[Kernel]) -> Kernels:
    # A device has a hundred tables, and `isinstance` of a protocol asks each for all its members.
    if hasattr(kernels, "for_op"):
        return cast("Kernels", kernels)
    return KernelTable(kernels)


@record
class KernelIndex:
    """All kernels of one device by op type, each list ranked and judged when it is asked for."""

    _sources: dict[str, list[_Source]] = field(default_factory=dict)
    _by_op: dict[str, list[Entry]] = field(default_factory=dict)
    _constrained: dict[str, tuple[str, ...]] = field(default_factory=dict)
    _judged: dict[Any, Judged] = field(default_factory=dict)

    def add(
        self,
        kernels: Kernels | Iterable[Kernel],
        plugin: str = "",
        distribution: str = "",
        guest: Callable[[str], bool] = lambda _: False,
        taken_from: Callable[[Kernel], str] = lambda _: "",
        without: Container[str] = (),
    ) -> None:
        """Adds a table's kernels behind those of the tables added before.

        Args:
            kernels: a table, or what stands for one: it is asked for an op's kernels when a node
                of that op is first seen.
            plugin, distribution: see `Entry`.
            guest: gives `Entry.guest` for an op type.
            taken_from: gives `Entry.taken_from`.
            without: op types whose kernels are left out.
        """
        table = _as_table(kernels)
        source = _Source(table, plugin, distribution, guest, taken_from)
        for op in table.ops():
            if op not in without:
                self._sources.setdefault(op, []).append(source)
                self._by_op.pop(op, None)
        self._constrained.clear()
        self._judged.clear()

    def entries(self, op: str) -> list[Entry]:
        """The ranked kernels for an op type."""
        found = self._by_op.get(op)
        if found is None:
            found = self._by_op[op] = self._ranked(op)
        return found

    def _ranked(self, op: str) -> list[Entry]:
        pairs = [(s, k) for s in self._sources.get(op, ()) for k in s.kernels.for_op(op)]
        entries = [
            Entry(k, s.plugin, s.distribution, order, s.guest(op), s.taken_from(k))
            for order, (s, k) in enumerate(pairs)
        ]
        return sorted(entries, key=lambda e: e.rank)

    def judged(self, op: str, attrs: Mapping[str, Any], device: str = "") -> Judged:
        """What the label and the types of a node decide; kept for all that have the same.

        Args:
            op: the op type.
            attrs: the node's attributes.
            device: the device's name, for the rejections.
        """
        names = self._constrained.get(op)
        if names is None:
            every = {name for entry in self.entries(op) for name in entry.kernel.dtypes}
            names = self._constrained[op] = tuple(sorted(every))
        wanted = attrs.get(LABEL_ATTR) or ""
        key = (op, device, wanted, *[_type_key(attrs.get(name)) for name in names])
        known = self._judged.get(key)
        if known is None:
            known = self._judged[key] = _judge(self, op, attrs, wanted, device)
        return known

    def find(self, kernel: Kernel) -> Entry | None:
        """The entry of a record, or None if it is none of this device's."""
        return next((e for e in self.entries(kernel.op) if e.kernel is kernel), None)

    def ops(self) -> list[str]:
        """The op types that have any kernel, sorted; loads every table."""
        return [op for op in sorted(self._sources) if self.entries(op)]

    def __contains__(self, op: object) -> bool:
        return isinstance(op, str) and bool(self.entries(op))

    def __iter__(self) -> Iterator[Entry]:
        for op in self.ops():
            yield from self._by_op[op]

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def ties(self) -> list[Tie]:
        """Pairs of kernels from different plugins that only the order of plugins tells apart."""
        found = []
        for op, sources in sorted(self._sources.items()):
            # Those of one plugin are in the order that it wants, so they need no look.
            if len({s.plugin for s in sources if s.plugin != CORE}) < 2:
                continue
            entries = self.entries(op)
            for i, first in enumerate(entries):
                for second in entries[i + 1 :]:
                    if first.plugin == second.plugin or first.guest != second.guest:
                        continue
                    if _indistinct(first.kernel, second.kernel):
                        found.append(Tie(op, first, second))
        return found


def _indistinct(a: Kernel, b: Kernel) -> bool:
    if (a.label, a.priority, a.specificity) != (b.label, b.priority, b.specificity):
        return False
    return all(types & b.dtypes[attr] for attr, types in a.dtypes.items() if attr in b.dtypes)


def select(
    sig: NodeSig, index: KernelIndex, device: str = "", judged: Judged | None = None
) -> Selection:
    """Ranks the kernels of one device for a node.

    Args:
        sig: the node.
        index: the device's kernels.
        device: the device's name, for the rejections.
        judged: what `index.judged` says of the node, where it is at hand.

    Returns:
        The choice, the runners-up and a reason for everyone who is neither. Never raises: a kernel
        whose `when` fails is rejected with what it raised.
    """
    judged = judged or index.judged(sig.op, sig.attrs, device)
    if judged.settled is not None:
        return judged.settled
    return _outcome([_asked(entry, sig, device) for entry in judged.found])


def judge_alone(entry: Entry, sig: NodeSig, device: str = "") -> Entry | Rejection:
    """A kernel that is of no index, if it admits a node; else why not."""
    reason = _unfit(entry.kernel, sig.attrs, entry.kernel.label)
    return _asked(_rejection(entry, device, reason) if reason else entry, sig, device)


def _judge(
    index: KernelIndex, op: str, attrs: Mapping[str, Any], wanted: str, device: str
) -> Judged:
    """What labels and types say of the kernels for an op."""
    found: list[Entry | Rejection] = []
    for entry in index.entries(op):
        reason = _unfit(entry.kernel, attrs, wanted)
        found.append(_rejection(entry, device, reason) if reason else entry)
    if not found:
        hint = sibling_hint(op, index)
        reason = f"no kernel for {op}" + (f", but {hint}" if hint else "")
        found.append(Rejection(reason=reason, device=device))
    open_ = any(isinstance(e, Entry) and e.kernel.when is not None for e in found)
    return Judged(tuple(found), None if open_ else _outcome(found))


def _outcome(found: Iterable[Entry | Rejection]) -> Selection:
    found = list(found)
    admitted = [e for e in found if isinstance(e, Entry)]
    rejections = tuple(e for e in found if isinstance(e, Rejection))
    return Selection(admitted[0] if admitted else None, tuple(admitted[1:]), rejections)


def _rejection(entry: Entry, device: str, reason: str, fault: bool = False) -> Rejection:
    return Rejection(
        reason=reason, device=device, kernel=entry.kernel.qualname, plugin=entry.plugin, fault=fault
    )


def _unfit(kernel: Kernel, attrs: Mapping[str, Any], wanted: str) -> str:
    """The reason why a kernel takes no node with such a label and such types; empty if it may."""
    if kernel.label != wanted and (wanted or kernel.label != PORTABLE):
        if wanted:
            own = f"label {kernel.label!r}" if kernel.label else "no label"
            return f"the node asks for label {wanted!r}; it has {own}"
        return f"it is used only on request ({LABEL_ATTR}={kernel.label!r})"
    for attr, admitted in kernel.dtypes.items():
        reason = _reject_type(attr, admitted, attrs)
        if reason:
            return reason
    return kernel.refused


def _asked(found: Entry | Rejection, sig: NodeSig, device: str) -> Entry | Rejection:
    """What a kernel that fits says of a node, if it is one that asks for more than types."""
    if isinstance(found, Rejection) or found.kernel.when is None:
        return found
    try:
        reason, fault = read_verdict(found.kernel.when(sig))
    except failures() as e:
        reason, fault = f"its when() raised {type(e).__name__}: {e}", e
    if fault is not None:
        _tell(f"{sig.op}: {found} on {device or 'a device'}: {reason}", fault)
    return _rejection(found, device, reason, fault is not None) if reason else found


def read_verdict(verdict: Any) -> tuple[str, BaseException | None]:
    """What a `when` says: the reason why not, or empty, and what is wrong with the answer."""
    if isinstance(verdict, str):
        return verdict or "it declines this node", None
    if isinstance(verdict, (bool, np.bool_)):
        return "" if verdict else "it declines this node", None
    told = f"its when() returned {verdict!r}, which is neither True nor False nor a reason"
    return told, TypeError(told)


_told: set[str] = set()


def _tell(text: str, fault: BaseException) -> None:
    """Warns of a kernel's fault, once."""
    if text not in _told:
        _told.add(text)
        raised = fault if fault.__traceback__ is not None else None
        _log.warning("%s", text, exc_info=raised)


def _type_key(value: Any) -> Any:
    """What `_reject_type` can tell apart; a type by its number, whose hash is no call of Python."""
    if value.__class__ is DType:
        return value._enum
    if isinstance(value, (list, tuple)):
        return tuple([t._enum if isinstance(t, DType) else str(t) for t in value])
    return type(value)


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
        return f"it constrains {attr}, which the node does not have{_type_attrs(attrs)}"
    else:
        return f"it constrains {attr}, which is no type attribute{_type_attrs(attrs)}"
    return f"{attr} is {shown}; it takes {', '.join(sorted(t.name for t in admitted))}"


def _type_attrs(attrs: Mapping[str, Any]) -> str:
    found = [name for name, value in attrs.items() if isinstance(value, DType)]
    return f" (it has {', '.join(found)})" if found else ""
