"""Opening a device: the instance, and every kernel and fusion that any plugin has for it."""

from __future__ import annotations

import logging
import traceback as tb
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any, Final

from opdock.codes import of_kind
from opdock.devices.protocols import check_device
from opdock.devices.segment import SegmentCompiler
from opdock.failures import failures
from opdock.kernels import portable
from opdock.kernels.expr.cluster import CLUSTER, OPEN_CLUSTER
from opdock.kernels.expr.turns import TURNS
from opdock.kernels.expr.updates import UPDATES
from opdock.kernels.select.deferred import DeferredTable
from opdock.kernels.select.selection import CORE, KernelIndex, Selection, select
from opdock.kernels.select.signature import NodeSig
from opdock.kernels.select.table import Kernel, Kernels, KernelTable
from opdock.late import record
from opdock.plugins import ownership
from opdock.plugins.loading import collect, resolve
from opdock.plugins.patterns import FusionPattern, Fusions, LaterFusions
from opdock.plugins.records import FusionModule, KernelModule, PluginError, ProbedDevice
from opdock.plugins.state import Backend, Plugin, Quarantine

_log = logging.getLogger("opdock.plugins")

_NAMESPACE: Final = ("asarray", "astype", "reshape", "where", "float32")
"""A few of the names that every array namespace has, to tell one from what is none."""


@record(eq=False)
class OpenDevice:
    """An open device with its kernels and fusions.

    Attributes:
        device: the backend's device object.
        probed: the backend's record and what the probe found.
        kernels: own kernels, then those of packs in plugin order, then portable ones; ranked. What
            packs bring that the backend does not admit comes last.
        fusions: its fusion patterns.
        compiler: what compiles its segments, or None.
        notes: what of the packs was put back or left out, in words.
    """

    device: Any
    probed: ProbedDevice
    kernels: KernelIndex = field(default_factory=KernelIndex)
    fusions: Fusions = field(default_factory=Fusions)
    compiler: SegmentCompiler | None = None
    notes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The name by its own type, "ACME:0", which is the same in every session."""
        return f"{self.own_type}:{self.probed.attributes.index}"

    @property
    def own_type(self) -> str:
        """The device type that always addresses this backend."""
        return self.probed.spec.own_type

    @property
    def backend(self) -> str:
        """The backend's name."""
        return self.probed.spec.name

    @property
    def plugin(self) -> str:
        """The plugin that brought the backend."""
        return self.probed.plugin

    @property
    def distribution(self) -> str:
        """The distribution that brought the backend; empty for a registered module."""
        return self.probed.distribution

    def select(self, sig: NodeSig, name: str = "") -> Selection:
        """Ranks this device's kernels for a node; `name` is the device's, for the rejections."""
        return select(sig, self.kernels, name or self.name)


def open_device(
    backend: Backend,
    probed: ProbedDevice,
    plugins: Sequence[Plugin],
    expel: Callable[[Plugin, Quarantine], None],
) -> OpenDevice:
    """Makes the device object and gathers its kernels and fusions.

    Args:
        backend: the backend's state.
        probed: which of its devices.
        plugins: loaded plugins in order; they may bring kernels and fusions.
        expel: called with a plugin whose pack fails; the device opens without it.

    Raises:
        PluginError: the device, or the backend's own tables, cannot be had.
    """
    spec = probed.spec
    try:
        device = _resolved(spec.device)(probed.attributes)
        check_device(device)
        compiler = _as_compiler(spec.compiler, _resolved(spec.compiler)) if spec.compiler else None
    except failures() as e:
        raise _failed(backend, probed, e) from e
    opened = OpenDevice(device, probed, compiler=compiler)
    furnish(opened, backend, plugins, expel)
    return opened


def furnish(
    opened: OpenDevice,
    backend: Backend,
    plugins: Sequence[Plugin],
    expel: Callable[[Plugin, Quarantine], None],
) -> None:
    """Gathers a device's kernels and fusions, in place of those that it has.

    Args:
        opened: the device. Sessions that have its present kernels keep them.
        backend, plugins, expel: as for `open_device`.

    Raises:
        PluginError: the backend's own tables cannot be had.
    """
    spec, probed = opened.probed.spec, opened.probed
    try:
        tables = [_table(given, opened.device, backend, probed) for given in spec.kernels]
        names = [name for name in spec.fusions if isinstance(name, str)]
        found = [p for name in names for p in _as_patterns(name, _resolved(name))]
        mounted = _mounted(opened.device)
    except failures() as e:
        raise _failed(backend, probed, e) from e
    opened.kernels, opened.notes = KernelIndex(), ()
    origins = _origins([*plugins, backend.plugin])
    for table in tables:
        _add(opened, table, backend.plugin, origins)
    found += _packs(opened, backend.plugin, plugins, expel, origins)
    if mounted is not None:
        opened.kernels.add(mounted, CORE, "opdock-core")
    opened.fusions = Fusions(found, [_later(m) for m in spec.fusions if not isinstance(m, str)])
    for tie in opened.kernels.ties():
        _log.warning("device %s:%d: %s", spec.own_type, probed.attributes.index, tie)


def _mounted(device: Any) -> KernelTable | None:
    """Core's kernels on the device's namespace, if it has one."""
    space = device.namespace
    if space is None:
        return None
    lacking = [name for name in _NAMESPACE if not hasattr(space, name)]
    if lacking:
        raise TypeError(
            f"{type(device).__name__}.namespace is {space!r}, which is no array namespace: it has "
            f"no {lacking[0]}"
        )
    return portable.mount(space, device.dtypes, device.refuses)


def _packs(
    opened: OpenDevice,
    owner: Plugin,
    plugins: Sequence[Plugin],
    expel: Callable[[Plugin, Quarantine], None],
    origins: Mapping[str, str],
) -> list[FusionPattern]:
    arguments: dict[str, Any] = {
        "backend": opened.backend,
        "device": opened.probed.attributes,
    }
    found: list[FusionPattern] = []
    for plugin in plugins:
        try:
            tables = [
                _as_table(t, _resolved(t), opened.device) if isinstance(t, str) else t
                for t in collect(plugin, "opdock_kernels", (KernelTable, str), **arguments)
            ]
            patterns = collect(plugin, "opdock_fusions", (FusionPattern,), **arguments)
            if displaced := ownership.contest_fusions(patterns):
                raise displaced
        except Quarantine as verdict:
            expel(plugin, verdict)
            continue
        except failures() as e:
            what = f"kernels for backend {opened.backend!r}"
            expel(plugin, Quarantine.of("import-error", what, e))
            continue
        guest = not (ownership.kin(plugin, owner) or ownership.admitted(plugin, opened.probed.spec))
        for table in tables:
            _add(opened, table, plugin, origins, guest)
        if not guest:
            found += patterns
        elif tables or patterns:
            opened.notes += (_put_back(plugin, opened.backend),)
    return found


def _add(
    opened: OpenDevice,
    kernels: Kernels,
    plugin: Plugin,
    origins: Mapping[str, str],
    guest: bool = False,
) -> None:
    def taken_from(kernel: Kernel) -> str:
        home = origins.get(_package(getattr(kernel.code, "__module__", None)), "")
        return "" if home == plugin.name else home

    # A guest's kernel for what is fused would take all that the backend computes op by op.
    without = (CLUSTER, OPEN_CLUSTER, TURNS, UPDATES) if guest else ()
    own = {op.name for op in plugin.records.get("opdock_ops", ())}
    opened.kernels.add(
        kernels, plugin.name, plugin.distribution, lambda op: guest and op not in own, taken_from,
        without,
    )  # fmt: skip


def _origins(plugins: Iterable[Plugin]) -> dict[str, str]:
    """Package -> the plugin whose code it is; a package of two plugins is nobody's."""
    found = {_package(portable.__name__): "core"}
    for plugin in plugins:
        specs = [b.spec for b in plugin.backends]
        tables = [t if isinstance(t, str) else t.table for s in specs for t in s.kernels]
        named = [*(s.device for s in specs), *tables]
        packages = {_package(getattr(plugin.module, "__name__", "")), *map(_package, named)}
        for package in packages - {""}:
            same = found.get(package, plugin.name) == plugin.name
            found[package] = plugin.name if same else ""
    return found


def _package(module: str | None) -> str:
    """The distribution's part of a dotted name, "opdock_acme" of "opdock_acme.kernels:table"."""
    return (module or "").partition(":")[0].partition(".")[0]


def _put_back(plugin: Plugin, backend: str) -> str:
    return (
        f"backend {backend!r} does not admit {plugin.name!r} ({plugin.origin}): its kernels are "
        "for its own ops and for what nothing else there computes, its fusions are left out "
        f"({ownership.ADMIT}={plugin.name} would let them in)"
    )


def _table(
    given: str | KernelModule, device: Any, backend: Backend, probed: ProbedDevice
) -> Kernels:
    if isinstance(given, str):
        return _as_table(given, _resolved(given), device)

    def load() -> KernelTable:
        try:
            return _as_table(given.table, _resolved(given.table), device)
        except failures() as e:
            raise _failed(backend, probed, e) from e

    return DeferredTable(given.table, given.ops, load)


def _resolved(dotted: str) -> Any:
    """What a record's dotted name leads to; the error says which of its names leads nowhere."""
    try:
        return resolve(dotted)
    except failures() as e:
        raise ImportError(f"{dotted!r}: {type(e).__name__}: {e}") from e


def _as_table(name: str, found: Any, device: Any) -> KernelTable:
    if callable(found) and not isinstance(found, KernelTable):
        found = found(device)
    if not isinstance(found, KernelTable):
        raise TypeError(f"{name!r} must be a KernelTable, got {found!r}")
    return found


def _as_patterns(name: str, found: Any) -> list[FusionPattern]:
    patterns = list(found)
    for pattern in patterns:
        if not isinstance(pattern, FusionPattern):
            raise TypeError(f"{name!r} must hold FusionPattern records, got {pattern!r}")
    return patterns


def _later(module: FusionModule) -> LaterFusions:
    def load() -> list[FusionPattern]:
        return _as_patterns(module.patterns, _resolved(module.patterns))

    return LaterFusions(module.patterns, module.ops, load)


def _as_compiler(name: str, found: Any) -> Any:
    if not callable(found):
        raise TypeError(f"{name!r} must be a function of a Segment, got {found!r}")
    return found


def _failed(backend: Backend, probed: ProbedDevice, error: BaseException) -> PluginError:
    spec = probed.spec
    hint = f" ({spec.install_hint})" if spec.install_hint else ""
    told = (
        f"device {spec.own_type}:{probed.attributes.index} of plugin {backend.plugin.name!r} "
        f"({backend.plugin.origin}) cannot be opened: {type(error).__name__}: {error}{hint}"
    )
    return PluginError(
        of_kind("open-failed", told),
        backend.plugin.name,
        "open-failed",
        "".join(tb.format_exception(error)),
    )
