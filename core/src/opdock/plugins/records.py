"""The records that hooks yield: frozen, keyword-only, validated when they are made.

New fields get defaults, so a plugin written for an older minor API version keeps working.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any, Final, Literal

from opdock.devices.protocols import DeviceAttributes
from opdock.devices.routes import CopyRoute
from opdock.fields import check_fields
from opdock.kernels.select.selection import Rejection
from opdock.late import record
from opdock.plugins.patterns import FusionPattern, P

__all__ = [
    "API_VERSION",
    "BackendSpec",
    "Candidate",
    "CopyRoute",
    "DeviceAttributes",
    "FusionModule",
    "FusionPattern",
    "GraphPass",
    "GraphTransform",
    "KernelModule",
    "P",
    "PluginError",
    "Probe",
    "ProbedDevice",
    "Rejection",
    "Requirement",
    "ToleranceRow",
]

API_VERSION: Final = (1, 2)
"""Version of the plugin API, independent of any distribution's: same major, minor up to this."""

_NAME = re.compile(r"[a-z][a-z0-9_]*")
_TYPE = re.compile(r"[A-Z][A-Z0-9_]*")
_DOTTED = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")

_COMMON: Final = frozenset({"GPU"})
"""Types that say what the hardware is and that no backend can own."""


class PluginError(RuntimeError):
    """A plugin that was asked for cannot be used; the message holds the reason.

    Attributes:
        plugin: its name.
        kind: the quarantine kind, e.g. "import-error".
        traceback: where it failed, empty when nothing was raised.
    """

    def __init__(self, message: str, plugin: str = "", kind: str = "", traceback: str = "") -> None:
        super().__init__(message)
        self.plugin = plugin
        self.kind = kind
        self.traceback = traceback


def _match(owner: str, what: str, value: Any, pattern: re.Pattern[str], wanted: str) -> None:
    if not isinstance(value, str):
        raise TypeError(f"{owner}.{what} must be a string, got {value!r}")
    if not pattern.fullmatch(value):
        raise ValueError(f"{owner}.{what} must be {wanted}, got {value!r}")


def _dotted(owner: str, what: str, value: Any) -> None:
    _match(owner, what, value, _DOTTED, "a dotted name like 'pkg.mod:attr'")


def _dotted_all(owner: str, what: str, values: Any) -> tuple[str, ...]:
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise TypeError(f"{owner}.{what} must be a tuple of dotted names, got {values!r}")
    names = tuple(values)
    for name in names:
        _dotted(owner, what, name)
    return names


def _parts(owner: str, what: str, values: Any, kind: type) -> tuple[Any, ...]:
    if isinstance(values, str) or not isinstance(values, Iterable):
        return _dotted_all(owner, what, values)
    parts = tuple(values)
    _dotted_all(owner, what, [part for part in parts if not isinstance(part, kind)])
    return parts


def _words(owner: str, what: str, values: Any) -> frozenset[str]:
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise TypeError(f"{owner}.{what} must be a set of names, got {values!r}")
    words = frozenset(values)
    if not all(isinstance(word, str) and word for word in words):
        raise TypeError(f"{owner}.{what} must hold names, got {sorted(map(repr, words))}")
    return words


def check_version(owner: str, value: Any) -> tuple[int, int]:
    """An API version as (major, minor); TypeError for anything else."""
    ok = isinstance(value, tuple) and len(value) == 2 and all(type(v) is int for v in value)
    if not ok:
        raise TypeError(f"{owner} must be (major, minor), got {value!r}")
    return value  # type: ignore[no-any-return]


@record(frozen=True, kw_only=True)
class KernelModule:
    """A table of kernels with the op types that it is for: imported when a program has one.

    Attributes:
        table: "pkg.mod:table", as in `BackendSpec.kernels`.
        ops: the op types that the table has kernels for, all of them: more than that is an error
            when it is loaded, since nobody would find them.

    Raises:
        TypeError, ValueError: a field is malformed.
    """

    table: str
    ops: frozenset[str]

    def __post_init__(self) -> None:
        _dotted("KernelModule", "table", self.table)
        object.__setattr__(self, "ops", _words("KernelModule", "ops", self.ops))


@record(frozen=True, kw_only=True)
class FusionModule:
    """Fusion patterns with op types that they are about: imported when a program has one.

    Attributes:
        patterns: "pkg.mod:patterns", as in `BackendSpec.fusions`.
        ops: each pattern has a node of one of these op types.

    Raises:
        TypeError, ValueError: a field is malformed.
    """

    patterns: str
    ops: frozenset[str]

    def __post_init__(self) -> None:
        _dotted("FusionModule", "patterns", self.patterns)
        object.__setattr__(self, "ops", _words("FusionModule", "ops", self.ops))


@record(frozen=True, kw_only=True)
class BackendSpec:
    """A backend: what it is called and where its parts are, imported when they are needed.

    Attributes:
        name: the backend's name, lower case; for a backend of the group `opdock.backends` the name
            of its entry point.
        device_type: the device type it serves; its devices join the pool `/device:<TYPE>:n`.
        own_type: the type that always addresses its own devices, unique among backends: best the
            name in capitals, which nobody else can claim.
        api: the `API_VERSION` for which it was written.
        priority: the higher comes first in the pool and in placement; the CPU has 0.
        probe: "pkg.mod:function" -> `Probe`; called without arguments, in a thread of its own,
            within a time limit. The first session of a process waits for all probes, so it imports
            no large library where anything smaller can tell what there is.
        device: "pkg.mod:Class"; called with a `DeviceAttributes` when the first node is placed on
            the device, which may be long after the probe, or never. Where the device cannot be had
            by then it raises with the reason: soft placement moves the nodes, anything else ends in
            an error of code OPD-DEVICE-003 that says so, and what is placed later asks again.
        kernels: "pkg.mod:table" each, imported when its first device opens, or a `KernelModule`
            each, imported when a program has one of its ops. A callable in place of a table is
            called with the device. None of them for a device that gets by with the portable
            kernels.
        fusions: "pkg.mod:patterns" each, sequences of `FusionPattern`, or a `FusionModule` each.
        compiler: "pkg.mod:function", called with a `Segment`: compiles what one of its devices does
            between two steps of others as a whole, or says why not.
        install_hint: what to type when the probe finds nothing, 'pip install "pkg[extra]"'.
        automatic: whether placement may choose its devices unasked. Not for devices that do not
            really compute.
        notes: "pkg.mod:function" -> lines that `opdock doctor` prints: which optional libraries
            are in use, or why not. Only the doctor calls it.
        admits: plugins, or distributions, whose devices may join the pool of `own_type`, and whose
            kernels and fusions may come before the backend's own.

    Raises:
        TypeError, ValueError: a field is malformed.
    """

    name: str
    device_type: str
    own_type: str
    api: tuple[int, int]
    priority: int = 100
    probe: str
    device: str
    kernels: tuple[str | KernelModule, ...] = ()
    fusions: tuple[str | FusionModule, ...] = ()
    install_hint: str = ""
    automatic: bool = True
    notes: str = ""
    compiler: str = ""
    admits: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        _match("BackendSpec", "name", self.name, _NAME, "lower case letters, digits and _")
        owner = f"BackendSpec {self.name!r}"
        check_version(f"{owner}.api", self.api)
        for what, kind in (("kernels", KernelModule), ("fusions", FusionModule)):
            object.__setattr__(self, what, _parts(owner, what, getattr(self, what), kind))
        object.__setattr__(self, "admits", _words(owner, "admits", self.admits))
        check_fields(self, f"{owner}.")
        _match(owner, "device_type", self.device_type, _TYPE, "upper case letters, digits and _")
        _match(owner, "own_type", self.own_type, _TYPE, "upper case letters, digits and _")
        if self.own_type in _COMMON:
            raise ValueError(
                f"{owner}.own_type must be a type of its own; {self.own_type} is everybody's, as a "
                "device_type"
            )
        _dotted(owner, "probe", self.probe)
        _dotted(owner, "device", self.device)
        for what in ("notes", "compiler"):
            if getattr(self, what):
                _dotted(owner, what, getattr(self, what))
        if self.admits and self.own_type != self.device_type:
            # Else the guests' numbers in the pool would be those of the backend's own devices.
            raise ValueError(f"{owner}.admits needs a device_type that is the own_type")


@record(frozen=True, kw_only=True)
class Probe:
    """What a backend found on this machine: its devices, or the reason why there is none.

    Attributes:
        devices: what can be opened.
        reason: why there is none, or why there are fewer than expected.
        installable: whether the backend's `install_hint` would help; False for a missing driver.
    """

    devices: tuple[DeviceAttributes, ...] = ()
    reason: str = ""
    installable: bool = True

    def __post_init__(self) -> None:
        if isinstance(self.devices, str) or not isinstance(self.devices, Iterable):
            raise TypeError(f"Probe.devices must hold DeviceAttributes, got {self.devices!r}")
        devices = tuple(self.devices)
        for device in devices:
            if not isinstance(device, DeviceAttributes):
                raise TypeError(f"Probe.devices must hold DeviceAttributes, got {device!r}")
        if len({d.index for d in devices}) != len(devices):
            raise ValueError("Probe.devices: two devices have the same index")
        object.__setattr__(self, "devices", devices)
        check_fields(self, "Probe.")


@record(frozen=True, kw_only=True)
class ProbedDevice:
    """A device that a probe found: known, counted, not opened.

    Attributes:
        spec: its backend.
        attributes: what the probe says of it.
        plugin: the plugin that brought the backend.
        distribution: what was installed with it; empty for files and registered modules.
        outside: why it does not join the pool of its type, which belongs to another backend.
    """

    spec: BackendSpec
    attributes: DeviceAttributes
    plugin: str = ""
    distribution: str = ""
    outside: str = ""


@record(frozen=True, kw_only=True)
class GraphPass:
    """A rewrite of the compiler's graph.

    Attributes:
        name: unique among the passes of all plugins; users switch the pass on and off by it.
        stage: when it runs: after core's own rewrites ("before_place"), on nodes with devices and
            kernels ("after_place"), or when nodes have been fused and copies are still to come
            ("after_fuse").
        run: `run(graph) -> GraphView | None`, for each program, and for each body of a loop or a
            branch; None means that it changed the graph that it got, or nothing.
        position: the lower runs first; of equal ones the first by name.
        default: whether it runs without being switched on by name.
    """

    name: str
    stage: Literal["before_place", "after_place", "after_fuse"]
    run: Callable[[Any], Any]
    position: int = 0
    default: bool = True

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise TypeError(f"GraphPass.name must be a word, got {self.name!r}")
        if "," in self.name:  # which separates names where users give several
            raise ValueError(f"GraphPass.name must not have a comma, got {self.name!r}")
        if self.stage not in ("before_place", "after_place", "after_fuse"):
            raise ValueError(f"GraphPass {self.name!r}: unknown stage {self.stage!r}")
        check_fields(self, f"GraphPass {self.name!r}: ")


@record(frozen=True, kw_only=True)
class GraphTransform:
    """A rewrite of GraphDefs that users call by name, as `opdock transform-graph` does.

    Attributes:
        name: unique among the transforms of all plugins: letters, digits and underscores.
        run: `run(graph_def, context, **options) -> GraphDef`, which leaves what it gets as it is.
            `context.inputs` and `context.outputs` are names of nodes or tensors. Its keyword-only
            arguments are the options, annotated with `str`, `int`, `float`, `bool`, or
            `tuple[str, ...]` for one that may come several times.
    """

    name: str
    run: Callable[..., Any]

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not re.fullmatch(r"\w+", self.name, re.ASCII):
            raise TypeError(f"GraphTransform.name must be a word, got {self.name!r}")
        check_fields(self, f"GraphTransform {self.name!r}: ")


@record(frozen=True, kw_only=True)
class Candidate:
    """A device that could take a node: what `opdock_place_node` chooses from.

    Attributes:
        device: the device's canonical name.
        backend: the backend's name.
        priority: the backend's priority.
        rung: how the node would be computed: by a kernel of the backend or a kernel pack
            ("native"), by core's kernel on the device's array namespace ("portable"), as simpler
            ops on the device ("decomposed"), by the runtime ("builtin": variables, constants and
            the like), or on another device, with copies, while the rest of its group stays here
            ("fallback").
        kernel: where the kernel's code lives; empty where there is no single one.
        plugin: the plugin that brought the kernel; "core" for core's own.
        elsewhere: names of the nodes of the group that would run on another device.
        rejections: kernels of the device that were passed over, with reasons; among them those
            that gave up on the node at run time.
    """

    device: str
    backend: str = ""
    priority: int = 0
    rung: Literal["native", "portable", "decomposed", "builtin", "fallback"] = "native"
    kernel: str = ""
    plugin: str = ""
    elsewhere: Sequence[str] = ()
    rejections: Sequence[Rejection] = ()


@record(frozen=True, kw_only=True)
class Requirement:
    """A backend's answer to something that conformance asks for.

    Attributes:
        name: what is asked, e.g. "float64", or an op type.
        status: "unsupported" by nature, "planned", or a "bug" (then the case runs and must fail).
        reason: shown in the report; required.
        issue: where it is tracked.
        dtypes: names of the element types it holds for; empty for all.
    """

    name: str
    status: Literal["unsupported", "planned", "bug"]
    reason: str
    issue: str = ""
    dtypes: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        owner = f"Requirement {self.name!r}: "
        check_fields(self, owner)
        if self.status not in ("unsupported", "planned", "bug"):
            raise ValueError(f"{owner}unknown status {self.status!r}")
        if not self.reason:
            raise ValueError(f"{owner}a reason is required")
        object.__setattr__(self, "dtypes", _words(owner.rstrip(": "), "dtypes", self.dtypes))


@record(frozen=True, kw_only=True)
class ToleranceRow:
    """Slack beyond the table's, for one backend; the report shows it with its reason."""

    op: str
    dtype: str
    rtol: float
    atol: float
    reason: str

    def __post_init__(self) -> None:
        check_fields(self, f"ToleranceRow {self.op!r}: ")
        if not self.reason:
            raise ValueError(f"ToleranceRow {self.op!r}: a reason is required")


@record(frozen=True, kw_only=True)
class BackendStatus:
    """One backend's state: loaded, probed, open or quarantined.

    `outside` says why its devices do not join the pool of their type, if that is another's.
    """

    name: str
    device_type: str
    own_type: str
    priority: int
    state: str
    devices: tuple[DeviceAttributes, ...] = ()
    opened: tuple[int, ...] = ()
    kind: str = ""
    reason: str = ""
    traceback: str = ""
    install_hint: str = ""
    outside: str = ""


@record(frozen=True, kw_only=True)
class PluginStatus:
    """One plugin's state: what `opdock doctor` prints.

    Attributes:
        name: the entry point's name, or the module's for one registered by hand.
        group: "opdock.backends", "opdock.plugins", "file" or "registered".
        target: what is imported, "opdock_x" or a path.
        distribution, version: what to `pip install`; empty for files and registered modules.
        state: listed, loaded, probed, open or quarantined.
        kind: why it is quarantined, e.g. "import-error".
        reason: the same in words; for a backend without devices, why there is none.
        traceback: where it failed.
        hooks: the hooks it implements.
        backends: its backends.
    """

    name: str
    group: str
    target: str
    distribution: str = ""
    version: str = ""
    state: str = "listed"
    kind: str = ""
    reason: str = ""
    traceback: str = ""
    hooks: tuple[str, ...] = ()
    backends: tuple[BackendStatus, ...] = field(default_factory=tuple)


Records = Mapping[str, tuple[Any, ...]]
"""A plugin's validated records by the hook that yielded them."""
