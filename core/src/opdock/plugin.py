"""The public module for authors of plugins: everything a backend may import from opdock.

Its page, name by name, is `docs/reference/plugin.md`. The companions that it hands out, `axes`,
`codegen`, `host_ops`, `philox`, `tracing` and `windows`, are on `docs/reference/companions.md`, and
`opdock.testing.authoring`, for samples of ops, beside them.

A backend is a distribution with an entry point in the group `opdock.backends`, whose module
implements `opdock_backends` and yields a `BackendSpec`. `docs/plugin_hooks.md` documents each hook;
`plugins/echo` is a complete backend in under 100 lines.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from opdock import axes, dtypes, errors, windows
from opdock.compiler.views.graph import GraphView
from opdock.compiler.views.node import NodeView, ValueView
from opdock.devices.base import BaseDevice
from opdock.devices.protocols import (
    ArenaDevice,
    Buffer,
    Device,
    DeviceAttributes,
    KernelTime,
    LimitedDevice,
    MemoryStats,
    Recording,
    RecordingDevice,
)
from opdock.devices.recorded import record_segment
from opdock.devices.routes import HOST, CopyRoute
from opdock.devices.segment import (
    Executable,
    HeldVariable,
    Loan,
    Refusal,
    Segment,
    SegmentCompiler,
    SegmentNode,
    SegmentStream,
    SegmentValue,
    SegmentVariable,
)
from opdock.dtypes import (
    ALL,
    COMPLEX,
    FLOATS,
    INTS,
    NUMBERS,
    QUANTIZED,
    REALS,
    SIGNED,
    UNSIGNED,
    DType,
    as_dtype,
)
from opdock.graph.nodes.registry import OpSpec, PartialShape, ShapeSig, all_ops, define_op
from opdock.graph.nodes.registry import find as find_op
from opdock.graph.nodes.traits import (
    AlongAxis,
    Control,
    Cost,
    DropsAxes,
    Elementwise,
    Fails,
    Formatted,
    Moves,
    PerAxis,
    Reduction,
    Traits,
)
from opdock.kernels import philox
from opdock.kernels.expr.cluster import CLUSTER, OPEN_CLUSTER
from opdock.kernels.expr.turns import TURNS
from opdock.kernels.expr.updates import UPDATES
from opdock.kernels.numpy_namespace import NumpyNamespace
from opdock.kernels.portable import Exclusion, mount, portable
from opdock.kernels.select.arguments import flat_inputs, flat_outputs, infer_shapes
from opdock.kernels.select.cells import Cell, Resources
from opdock.kernels.select.context import KernelContext
from opdock.kernels.select.notes import heard, note
from opdock.kernels.select.selection import Rejection
from opdock.kernels.select.signature import NodeSig
from opdock.kernels.select.streams import RandomStream, random_stream
from opdock.kernels.select.table import Kernel, KernelTable
from opdock.plugins.clusters import (
    Asker,
    Channel,
    ClusterEngine,
    ClusterEngineSpec,
    Handle,
    Packet,
    Serving,
)
from opdock.plugins.hookspecs import hookimpl
from opdock.plugins.installed import Announcement, announced, installed_files
from opdock.plugins.records import (
    API_VERSION,
    BackendSpec,
    Candidate,
    FusionModule,
    FusionPattern,
    GraphPass,
    GraphTransform,
    KernelModule,
    P,
    PluginError,
    Probe,
    Requirement,
    ToleranceRow,
)
from opdock.util.determinism import deterministic
from opdock.util.interrupts import finalizer
from opdock.util.locks import Turn
from opdock.util.shelter import sheltered

if TYPE_CHECKING:
    from opdock import codegen, kept
    from opdock.devices import tracing
    from opdock.io import host_ops
    from opdock.kernels import cells, checks
    from opdock.plugins.records import PluginStatus

__all__ = [
    "ALL",
    "API_VERSION",
    "CLUSTER",
    "COMPLEX",
    "FLOATS",
    "HOST",
    "INTS",
    "NUMBERS",
    "OPEN_CLUSTER",
    "QUANTIZED",
    "REALS",
    "SIGNED",
    "TURNS",
    "UNSIGNED",
    "UPDATES",
    "AlongAxis",
    "Announcement",
    "ArenaDevice",
    "Asker",
    "BackendSpec",
    "BaseDevice",
    "Buffer",
    "Candidate",
    "Cell",
    "Channel",
    "ClusterEngine",
    "ClusterEngineSpec",
    "Control",
    "CopyRoute",
    "Cost",
    "DType",
    "Device",
    "DeviceAttributes",
    "DropsAxes",
    "Elementwise",
    "Exclusion",
    "Executable",
    "Fails",
    "Formatted",
    "FusionModule",
    "FusionPattern",
    "GraphPass",
    "GraphTransform",
    "GraphView",
    "Handle",
    "HeldVariable",
    "Kernel",
    "KernelContext",
    "KernelModule",
    "KernelTable",
    "KernelTime",
    "LimitedDevice",
    "Loan",
    "MemoryStats",
    "Moves",
    "NodeSig",
    "NodeView",
    "NumpyNamespace",
    "OpSpec",
    "P",
    "Packet",
    "PartialShape",
    "PerAxis",
    "PluginError",
    "Probe",
    "RandomStream",
    "Recording",
    "RecordingDevice",
    "Reduction",
    "Refusal",
    "Rejection",
    "Requirement",
    "Resources",
    "Segment",
    "SegmentCompiler",
    "SegmentNode",
    "SegmentStream",
    "SegmentValue",
    "SegmentVariable",
    "Serving",
    "ShapeSig",
    "ToleranceRow",
    "Traits",
    "Turn",
    "ValueView",
    "all_ops",
    "announced",
    "as_dtype",
    "axes",
    "cells",
    "checks",
    "codegen",
    "define_op",
    "deterministic",
    "dtypes",
    "errors",
    "finalizer",
    "find_op",
    "flat_inputs",
    "flat_outputs",
    "heard",
    "hookimpl",
    "host_ops",
    "infer_shapes",
    "installed_files",
    "kept",
    "load",
    "mount",
    "note",
    "philox",
    "portable",
    "random_stream",
    "record_segment",
    "register",
    "sheltered",
    "tracing",
    "unregister",
    "windows",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    # What file and checkpoint kernels share; protobuf comes with it, so only they pay for it.
    if name == "host_ops":
        return importlib.import_module("opdock.io.host_ops")
    # What core's kernels ask of their arguments; kernels need it, descriptions of backends do not.
    if name == "checks":
        return importlib.import_module("opdock.kernels.checks")
    # The places in sparse tensors.
    if name == "cells":
        return importlib.import_module("opdock.kernels.cells")
    # The renderer of scalar expressions as C, for backends that compile their own kernels.
    if name == "codegen":
        return importlib.import_module("opdock.codegen")
    # What is kept on disk from one process to the next.
    if name == "kept":
        return importlib.import_module("opdock.kept")
    # What a compiler of whole programs makes of lists, loops and checks.
    if name == "tracing":
        return importlib.import_module("opdock.devices.tracing")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def register(module: Any, name: str | None = None) -> PluginStatus:
    """Takes a module as a plugin in this process, for notebooks and tests.

    Sessions made from now on see its devices. The same module, or another of the same name,
    replaces what was registered before, so a notebook cell may run twice.

    Args:
        module: a module, or an object with methods, that implements hooks.
        name: what to call it; the module's name by default.

    Returns:
        The plugin's status.

    Raises:
        PluginError: the plugin is broken; the message says how.

    Example:
        import sys
        opdock.plugin.register(sys.modules[__name__])
    """
    from opdock.plugins.manager import get_manager

    return get_manager().register(module, name)


def load() -> list[PluginStatus]:
    """Loads all installed plugins now, as the first session and graphs with their ops would.

    Returns:
        The status of every plugin.
    """
    from opdock.plugins.manager import get_manager

    manager = get_manager()
    manager.load()
    return manager.status()


def unregister(name: str) -> None:
    """Forgets a plugin that `register` took; KeyError when there is none of that name."""
    from opdock.plugins.manager import get_manager

    get_manager().unregister(name)
