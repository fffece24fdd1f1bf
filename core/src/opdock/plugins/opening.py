"""Opening a device: the instance, and every kernel and fusion that any plugin has for it."""

from __future__ import annotations

import logging
import traceback as tb
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from opdock.devices.protocols import check_device
from opdock.kernels import portable
from opdock.kernels.select.selection import KernelIndex, Selection, select
from opdock.kernels.select.signature import NodeSig
from opdock.kernels.select.table import Kernel, KernelTable
from opdock.plugins.loading import collect, resolve
from opdock.plugins.patterns import FusionPattern
from opdock.plugins.records import PluginError, ProbedDevice
from opdock.plugins.state import Backend, Plugin, Quarantine

_log = logging.getLogger("opdock.plugins")


@dataclass(eq=False)
class OpenDevice:
    """An open device with its kernels and fusions.

    Attributes:
        device: the backend's device object.
        probed: the backend's record and what the probe found.
        kernels: own kernels, then those of packs in plugin order, then portable ones; ranked.
        fusions: fusion patterns, greatest benefit first.
    """

    device: Any
    probed: ProbedDevice
    kernels: KernelIndex = field(default_factory=KernelIndex)
    fusions: tuple[FusionPattern, ...] = ()

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
        return select(sig, self.kernels, name or f"{self.own_type}:{self.probed.attributes.index}")


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
        device = resolve(spec.device)(probed.attributes)
        check_device(device)
        tables = [_as_table(name, resolve(name), device) for name in spec.kernels]
        fusions = [_as_patterns(name, resolve(name)) for name in spec.fusions]
    except Exception as e:
        raise _failed(backend, probed, e) from e
    opened = OpenDevice(device, probed)
    for table in tables:
        opened.kernels.add(table, backend.plugin.name, backend.plugin.distribution)
    found = [pattern for patterns in fusions for pattern in patterns]
    found += _packs(opened, plugins, expel)
    if device.namespace is not None:
        mounted = portable.mount(device.namespace, device.dtypes, device.refuses)
        opened.kernels.add(mounted, "core", "opdock-core")
    # Name decides ties, so that the order is the same in every process.
    opened.fusions = tuple(sorted(found, key=lambda p: (-p.benefit, p.name)))
    for tie in opened.kernels.ties():
        _log.warning("device %s:%d: %s", spec.own_type, probed.attributes.index, tie)
    return opened


def _packs(
    opened: OpenDevice, plugins: Sequence[Plugin], expel: Callable[[Plugin, Quarantine], None]
) -> list[FusionPattern]:
    arguments: dict[str, Any] = {
        "backend": opened.backend,
        "device": opened.probed.attributes,
    }
    found: list[FusionPattern] = []
    for plugin in plugins:
        try:
            tables = [
                _as_table(t, resolve(t), opened.device) if isinstance(t, str) else t
                for t in collect(plugin, "opdock_kernels", (KernelTable, str), **arguments)
            ]
            patterns = collect(plugin, "opdock_fusions", (FusionPattern,), **arguments)
        except Quarantine as verdict:
            expel(plugin, verdict)
            continue
        except Exception as e:
            what = f"kernels for backend {opened.backend!r}"
            expel(plugin, Quarantine.of("import-error", what, e))
            continue
        for table in tables:
            opened.kernels.add(table, plugin.name, plugin.distribution)
        found += patterns
    return found


def _as_table(name: str, found: Any, device: Any) -> Iterable[Kernel]:
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


def _failed(backend: Backend, probed: ProbedDevice, error: Exception) -> PluginError:
    spec = probed.spec
    hint = f" ({spec.install_hint})" if spec.install_hint else ""
    return PluginError(
        f"device {spec.own_type}:{probed.attributes.index} of plugin {backend.plugin.name!r} "
        f"({backend.plugin.origin}) cannot be opened: {type(error).__name__}: {error}{hint}",
        backend.plugin.name,
        "open-failed",
        "".join(tb.format_exception(error)),
    )
