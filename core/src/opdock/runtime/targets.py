"""The devices of a session, from the plugin manager's pool."""

from __future__ import annotations

import contextlib
import functools
import logging
from collections.abc import Sequence
from typing import Any, Final

from opdock import errors
from opdock.codes import coded
from opdock.compiler.pipeline import OPTIONAL
from opdock.compiler.place.experience import Experience
from opdock.compiler.place.target import Target
from opdock.compiler.views.candidates import choose
from opdock.compiler.views.node import NodeView
from opdock.compiler.views.run import PluginPass
from opdock.devices.pool import DevicePool, PoolDevice, PoolOptions
from opdock.devices.router import Place, Router
from opdock.failures import failures
from opdock.graph.nodes.devicespec import DeviceSpec
from opdock.late import record
from opdock.nearest import meant
from opdock.plugins.manager import OpenDevice, PluginManager, get_manager
from opdock.plugins.records import Candidate, PluginError
from opdock.runtime.config import SessionConfig
from opdock.util.lazy import lazy

_log: Final = logging.getLogger("opdock.passes")


@record(frozen=True, slots=True)
class DeviceInfo:
    """One line of `Session.list_devices()`.

    Attributes:
        name: the device's full name.
        device_type: "CPU", "GPU" and so on.
        memory_limit_bytes: how much memory it has; 0 where that is not known.
        physical_device_desc: what it is, in words.
        incarnation: never 0; a session's devices have different ones.
    """

    name: str
    device_type: str
    memory_limit_bytes: int
    physical_device_desc: str = ""
    incarnation: int = 0


@record
class SessionDevices:
    """The devices that a session may use, best first; no value passes through lost ones."""

    targets: list[Target]
    manager: PluginManager
    config: SessionConfig
    pool: DevicePool
    experience: Experience

    @lazy
    def host(self) -> Target | None:
        """A device in host memory, for constant folding."""
        # To ask a device is to open it, so the one that is most likely comes first.
        for target in sorted(self.targets, key=lambda t: (t.device_type != "CPU", t.priority)):
            try:
                if target.is_host:
                    return target
            except errors.OpError:
                continue
        return None

    def open_likely(self) -> None:
        """Opens the host and the device that placement prefers.

        What does not open is told by the step that needs it.
        """
        preferred = next((t for t in self.targets if t.automatic), None)
        for target in filter(None, (preferred, self.host)):
            with contextlib.suppress(errors.OpError):
                target.opened()

    def unavailable(self, device_type: str) -> str | None:
        """Why no device has that type, in a plugin's words, or None."""
        return self.manager.why_unavailable(device_type) or None

    @property
    def hook(self) -> Any:
        """A plugin's placement, as `Placer` calls it, or None."""
        place_node = self.manager.place_node_hook
        if place_node is None:
            return None

        config = self.config.as_proto()

        def answer(node: NodeView, candidates: Sequence[Candidate]) -> tuple[str, str] | None:
            return place_node(node, candidates, config)

        return functools.partial(choose, answer=answer)

    def passes(self) -> list[PluginPass]:
        """The graph passes of plugins that are on, in order.

        Raises:
            InvalidArgumentError: a pass is to be switched on that nobody brings.
        """
        config, brought = self.config, self.manager.graph_passes()
        names = {record.name for _, record in brought}
        unknown = config.enabled_passes - names - frozenset(OPTIONAL)
        if unknown:
            raise errors.InvalidArgumentError(
                None, None,
                f"There is no compiler pass {min(unknown)!r} to switch on; plugins bring: "
                f"{', '.join(sorted(names)) or 'none'}.",
            )  # fmt: skip
        on = config.enabled_passes - config.disabled_passes
        if config.plugin_passes:
            on |= {record.name for _, record in brought if record.default} - config.disabled_passes
        return [
            PluginPass(record.name, plugin, record.stage, record.run)
            for plugin, record in brought
            if record.name in on
        ]

    def tell_unknown(self) -> None:
        """Warns of names to leave out that nothing has: no pass, and no fusion of what is open."""
        off = self.config.disabled_passes - frozenset(OPTIONAL)
        if off:
            passes = {record.name for _, record in self.manager.graph_passes()}
            fusions = {p.name for t in self.targets if t.is_open for p in t.fusions}
            for name in sorted(off - passes - fusions):
                _tell(name + meant(name, (*OPTIONAL, *passes, *fusions)))

    @lazy
    def router(self) -> Router:
        """The ways between the devices that are open."""
        return Router(self.manager.routes(), self._places)

    def _places(self) -> list[Place]:
        found = [(t, self.pool.find(t.name)) for t in self.targets if t._opened is not None]
        return [
            Place(t.name, p.own_type, t.device, passable=t.name not in self.experience.lost)
            for t, p in found
            if p is not None
        ]

    def attributes(self) -> list[DeviceInfo]:
        """Name, type, memory limit and description of each device."""
        out = []
        for number, target in enumerate(self.targets, 1):
            found = self.pool.find(target.name)
            attributes = None if found is None else found.probed.attributes
            memory = 0 if attributes is None else attributes.memory_bytes or 0
            text = "" if attributes is None else attributes.description
            out.append(DeviceInfo(target.name, target.device_type, memory, text, number))
        return out

    def close(self) -> None:
        """Forgets the session's devices; the manager keeps them open for other sessions."""
        self.targets = []


def discover(config: SessionConfig, experience: Experience, task: str) -> SessionDevices:
    """The devices that a session with this configuration may use.

    Args:
        config: the configuration.
        experience: what steps have taught of devices.
        task: the start of the devices' names.

    Raises:
        NotFoundError: no installed plugin has a device.
    """
    manager = get_manager()
    visible = str(config.device_options.get("visible_device_list") or "")
    options = PoolOptions(
        device_count=config.device_count,
        visible={"GPU": tuple(int(v) for v in visible.split(",") if v.strip())} if visible else {},
        prefix=task,
    )
    pool = DevicePool.build(manager.devices(), options)
    targets = [_target(d, manager, config) for d in pool if _admitted(d, config)]
    if not targets:
        told = (
            'opdock found no device. Install a backend, for instance: pip install "opdock-cpu". '
            "`opdock doctor` shows the state of every plugin."
        )
        if len(pool):
            present = ", ".join(d.name for d in pool)
            told = f"device_filters {list(config.device_filters)} leave no device of {present}."
        raise errors.NotFoundError(None, None, coded("OPD-PLACE-005", told))
    return SessionDevices(targets, manager, config, pool, experience)


def _admitted(device: PoolDevice, config: SessionConfig) -> bool:
    """Whether the filters let a device in, which they do if all are for other tasks."""
    own = DeviceSpec.from_string(device.name)
    wanted = [
        spec.device_type
        for spec in map(DeviceSpec.from_string, config.device_filters)
        if spec.job in (None, own.job)
        and spec.replica in (None, own.replica)
        and spec.task in (None, own.task)
    ]
    return not wanted or None in wanted or own.device_type in wanted


def _configure(opened: OpenDevice, config: SessionConfig) -> None:
    """Gives a device the session's options; one that does not take them does not serve it."""
    try:
        opened.device.configure(config.device_options)
    except errors.OpError:
        raise
    except failures() as e:
        who = f"{opened.plugin!r} ({opened.distribution or 'no distribution'})"
        said = f"configure() raised {type(e).__name__}: {e}"
        text = f"device {opened.name} of plugin {who} does not take the session's options: {said}"
        raise errors.UnavailableError(None, None, text) from e


def _target(device: PoolDevice, manager: PluginManager, config: SessionConfig) -> Target:
    spec = device.probed.spec

    def open_it() -> Any:
        try:
            opened = manager.open(device.probed)
        except PluginError as e:
            raise errors.UnavailableError(None, None, str(e)) from e
        _configure(opened, config)
        return opened.device, opened.kernels, opened.fusions, opened.compiler

    return Target(
        name=device.name, aliases=device.aliases, backend=spec.name,
        distribution=device.probed.distribution, priority=device.priority,
        open=open_it, description=device.description, automatic=device.automatic,
        options=config.device_options,
    )  # fmt: skip


@functools.cache
def _tell(name: str) -> None:
    """Once a process: many sessions have the same settings."""
    _log.warning("to be left out, but neither a pass nor a fusion of the open devices: %s", name)
