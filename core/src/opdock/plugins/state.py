"""What the manager remembers of each plugin and backend, and how one is quarantined."""

from __future__ import annotations

import logging
import traceback as tb
from dataclasses import field
from pathlib import Path
from typing import Any, Final, Literal

import pluggy

from opdock.codes import of_kind
from opdock.late import record
from opdock.plugins.installed import Announcement
from opdock.plugins.records import (
    BackendSpec,
    BackendStatus,
    DeviceAttributes,
    PluginError,
    PluginStatus,
    ProbedDevice,
    Records,
)

_log = logging.getLogger("opdock.plugins")

State = Literal["listed", "loaded", "probed", "open", "quarantined"]

KINDS: Final = (
    "import-error", "wrong-type", "api-too-new", "api-too-old", "unknown-hook", "duplicate",
    "probe-crashed", "probe-timeout", "blocked",
)  # fmt: skip
"""Why a plugin or a backend can be in quarantine."""


class Quarantine(Exception):
    """Stops the loading of one plugin; carries kind, reason and traceback."""

    def __init__(self, kind: str, reason: str, traceback: str = "") -> None:
        super().__init__(reason)
        self.kind = kind
        self.reason = reason
        self.traceback = traceback

    @classmethod
    def of(cls, kind: str, what: str, error: BaseException) -> Quarantine:
        """The verdict on an exception: "what: ValueError: message", with its traceback."""
        text = "".join(tb.format_exception(error))
        return cls(kind, f"{what}: {type(error).__name__}: {error}", text)


@record(eq=False)
class Backend:
    """One backend of a plugin."""

    spec: BackendSpec
    plugin: Plugin
    state: State = "loaded"
    devices: tuple[DeviceAttributes, ...] = ()
    opened: dict[int, Any] = field(default_factory=dict)
    kind: str = ""
    reason: str = ""
    traceback: str = ""
    installable: bool = True
    outside: str = ""

    @property
    def hint(self) -> str:
        """What to type to get its devices, if typing helps."""
        return self.spec.install_hint if self.installable and not self.devices else ""

    def quarantine(self, verdict: Quarantine) -> None:
        """Takes the backend out of use."""
        self.state, self.devices = "quarantined", ()
        self.kind, self.reason, self.traceback = verdict.kind, verdict.reason, verdict.traceback

    def probed(self) -> list[ProbedDevice]:
        """Its devices as records."""
        return [
            ProbedDevice(
                spec=self.spec, attributes=d, plugin=self.plugin.name,
                distribution=self.plugin.distribution, outside=self.outside,
            )
            for d in self.devices
        ]  # fmt: skip

    def status(self) -> BackendStatus:
        """A snapshot for people and programs."""
        spec = self.spec
        return BackendStatus(
            name=spec.name, device_type=spec.device_type, own_type=spec.own_type,
            priority=spec.priority, state=self.state, devices=self.devices,
            opened=tuple(sorted(self.opened)), kind=self.kind, reason=self.reason,
            traceback=self.traceback, install_hint=self.hint, outside=self.outside,
        )  # fmt: skip


@record(eq=False)
class Plugin:
    """One plugin: an entry point, a file, or a module registered by hand."""

    name: str
    group: str
    target: str
    distribution: str = ""
    version: str = ""
    source: Announcement | Path | Any = None
    module: Any = None
    state: State = "listed"
    kind: str = ""
    reason: str = ""
    traceback: str = ""
    relay: pluggy.PluginManager | None = None
    records: Records = field(default_factory=dict)
    backends: list[Backend] = field(default_factory=list)
    warned: bool = False

    def warn(self, what: str, trace: str = "") -> None:
        """Tells of a hook that goes wrong while programs are prepared, which it may at every node.

        The first time is a warning; what follows is for those who look at level DEBUG.
        """
        level = logging.DEBUG if self.warned else logging.WARNING
        self.warned = True
        _log.log(level, "%s%s", what, trace and f"\n{trace}")

    @property
    def origin(self) -> str:
        """The distribution if there is one, else where the code comes from."""
        return self.distribution or self.target

    def quarantine(self, verdict: Quarantine) -> None:
        """Takes the plugin and all that it brought out of use."""
        self.state, self.relay, self.records = "quarantined", None, {}
        self.kind, self.reason, self.traceback = verdict.kind, verdict.reason, verdict.traceback
        self.backends = []

    def error(self) -> PluginError:
        """The quarantine as an exception, for whoever asked for this plugin."""
        return PluginError(
            of_kind(
                self.kind,
                f"plugin {self.name!r} ({self.origin}) is quarantined: {self.kind}: {self.reason}",
            ),
            self.name,
            self.kind,
            self.traceback,
        )

    def status(self) -> PluginStatus:
        """A snapshot for people and programs; the state is that of its most useful backend."""
        state, kind, reason, trace = self.state, self.kind, self.reason, self.traceback
        if state == "loaded" and self.backends:
            best = min(self.backends, key=lambda b: _USEFUL.index(b.state))
            state, kind, reason, trace = best.state, best.kind, best.reason, best.traceback
        return PluginStatus(
            name=self.name, group=self.group, target=self.target, distribution=self.distribution,
            version=self.version, state=state, kind=kind, reason=reason, traceback=trace,
            hooks=self.hooks(), backends=tuple(b.status() for b in self.backends),
        )  # fmt: skip

    def hooks(self) -> tuple[str, ...]:
        """The names of the hooks it implements, sorted."""
        if self.relay is None or self.module is None:
            return ()
        return tuple(sorted(h.name for h in self.relay.get_hookcallers(self.module) or ()))


_USEFUL: Final = ("open", "probed", "loaded", "listed", "quarantined")
