"""What a ConfigProto asks for, as plain values."""

from __future__ import annotations

import os
from dataclasses import field
from typing import Any

from opdock.compiler.pipeline import disabled_by, disables_plugins, relaxed_by
from opdock.graph.nodes.graph import Graph
from opdock.io import protos
from opdock.late import record
from opdock.util.switches import switched_on


@record(frozen=True, slots=True)
class SessionConfig:
    """The settings of a session.

    Attributes:
        soft: `allow_soft_placement`.
        log_placement: `log_device_placement`.
        device_count: device type to the number of devices to use.
        device_filters: device specifications that limit which devices are used.
        intra_op_threads: threads within one op; 0 leaves it to the backend.
        inter_op_threads: ops that may run at the same time; 0 leaves it to the session.
        deadline_ms: `operation_timeout_in_ms`.
        device_options: what devices are configured with (`gpu_options` among them).
        disabled_passes: compiler passes that are off.
        enabled_passes: plugins' passes that are on though they are not by default.
        plugin_passes: whether plugins' passes run that are on by default.
        relaxed: whether the compiler may change the last bits of results.
        place_pruned: whether operations that no step needs may ask for devices that nobody has.
        cost_model_every: fill `RunMetadata.cost_graph` in each so-many-th step; 0 for none.
        cost_model_after: steps to leave out before.
        check: whether to look at all that plugins give: kernels' results, uploads, downloads.
        proto: the ConfigProto itself, or None where none was given.
    """

    soft: bool = False
    log_placement: bool = False
    device_count: dict[str, int] = field(default_factory=dict)
    device_filters: tuple[str, ...] = ()
    intra_op_threads: int = 0
    inter_op_threads: int = 0
    deadline_ms: int = 0
    device_options: dict[str, Any] = field(default_factory=dict)
    disabled_passes: frozenset[str] = frozenset()
    enabled_passes: frozenset[str] = frozenset()
    plugin_passes: bool = True
    relaxed: bool = False
    place_pruned: bool = False
    cost_model_every: int = 0
    cost_model_after: int = 0
    check: bool = False
    proto: Any = None

    def as_proto(self) -> Any:
        """A ConfigProto of one's own, for plugins: what the session was given, or TF's defaults."""
        made = protos.ConfigProto()
        if self.proto is not None:
            made.CopyFrom(self.proto)
        return made

    def wants_cost_model(self, step: int) -> bool:
        """Whether step number `step` of a program, from 0 on, is one to measure."""
        turn = step - self.cost_model_after
        return bool(self.cost_model_every) and turn >= 0 and (turn + 1) % self.cost_model_every == 0


def read(config: Any) -> SessionConfig:
    """The settings of a ConfigProto, or TF's defaults for None."""
    disabled = _names(os.environ.get("OPDOCK_DISABLE_PASSES", ""))
    enabled = _names(os.environ.get("OPDOCK_ENABLE_PASSES", ""))
    relaxed = switched_on("OPDOCK_RELAXED_MATH")
    check = switched_on("OPDOCK_CHECK")
    if config is None:
        return SessionConfig(
            disabled_passes=disabled, enabled_passes=enabled,
            relaxed=relaxed or "relaxed" in enabled, check=check,
        )  # fmt: skip
    gpu, graph, extras = config.gpu_options, config.graph_options, _extras(config)
    disabled |= _names(extras.pop("disable_passes", ""))
    enabled |= _names(extras.pop("enable_passes", ""))
    return SessionConfig(
        soft=config.allow_soft_placement,
        log_placement=config.log_device_placement,
        device_count=dict(config.device_count),
        device_filters=tuple(config.device_filters),
        intra_op_threads=config.intra_op_parallelism_threads,
        inter_op_threads=config.inter_op_parallelism_threads,
        deadline_ms=config.operation_timeout_in_ms,
        device_options={
            "intra_op_parallelism_threads": config.intra_op_parallelism_threads,
            "memory_fraction": gpu.per_process_gpu_memory_fraction,
            "allow_growth": gpu.allow_growth,
            "visible_device_list": gpu.visible_device_list,
            **extras,
        },
        disabled_passes=disabled | disabled_by(config),
        enabled_passes=enabled,
        plugin_passes=not disables_plugins(config),
        relaxed=relaxed or relaxed_by(config) or "relaxed" in enabled,
        place_pruned=graph.place_pruned_graph,
        cost_model_every=graph.build_cost_model,
        cost_model_after=graph.build_cost_model_after,
        check=bool(extras.get("check", check)),
        proto=config,
    )


def _names(text: str) -> frozenset[str]:
    return frozenset(filter(None, (name.strip() for name in text.split(","))))


def _extras(config: Any) -> dict[str, Any]:
    """What TF's messages have no field for: the parameters of a custom optimizer named "opdock".

    `config.graph_options.rewrite_options.custom_optimizers.add(name="opdock")
    .parameter_map["allow_tf32"].b = True` reaches every device as the option "allow_tf32". The
    session itself takes "check"; "enable_passes" and "disable_passes" are for the compiler: names
    of passes, with commas.
    """
    found: dict[str, Any] = {}
    for custom in config.graph_options.rewrite_options.custom_optimizers:
        if custom.name == "opdock":
            for key, value in custom.parameter_map.items():
                kind = value.WhichOneof("value")
                given = getattr(value, kind) if kind else None
                found[key] = given.decode() if isinstance(given, bytes) else given
    return found


def interactive(config: Any) -> Any:
    """A ConfigProto under which operations that no step needs may be impossible to place.

    Whoever tries things out leaves such operations behind.
    """
    if config is None:
        config = protos.ConfigProto(gpu_options=protos.GPUOptions(allow_growth=True))
    if isinstance(config, protos.ConfigProto):
        own = protos.ConfigProto()
        own.CopyFrom(config)
        own.graph_options.place_pruned_graph = True
        return own
    return config


def check_arguments(target: Any, graph: Any, config: Any) -> None:
    """Raises TypeError for what no session is made of."""
    if graph is not None and not isinstance(graph, Graph):
        raise TypeError(f"graph must be a tf.Graph, but got {type(graph)}")
    if config is not None and not hasattr(config, "allow_soft_placement"):
        raise TypeError(f"config must be a tf.ConfigProto, but got {type(config)}")
    if target is not None and not isinstance(target, (str, bytes)):
        text = f"target must be a string, but got {type(target)}."
        if hasattr(target, "allow_soft_placement"):
            text += ' Did you do "Session(config)" instead of "Session(config=config)"?'
        raise TypeError(text)
