"""What `tf.config` asks of sessions that are made without a ConfigProto of their own.

`tf.config` and `tf.debugging` write them; a session reads them once, when it is made.
"""

from __future__ import annotations

from dataclasses import field
from typing import Any, Final

from opdock.io import protos
from opdock.late import record

__all__ = ["FIRST_CPU", "asked", "kept_options", "settings"]

FIRST_CPU: Final = "/physical_device:CPU:0"
"""The processor, as `tf.config` names it."""

# Fields of RewriterConfig that `tf.config.optimizer` switches: with three states, and plain ones.
_TOGGLES: Final[tuple[str, ...]] = (
    "layout_optimizer", "constant_folding", "shape_optimization", "remapping",
    "arithmetic_optimization", "dependency_optimization", "loop_optimization",
    "function_optimization", "debug_stripper", "scoped_allocator_optimization",
    "pin_to_host_optimization", "implementation_selector", "auto_mixed_precision",
)  # fmt: skip
_SWITCHES: Final[tuple[str, ...]] = ("disable_model_pruning", "disable_meta_optimizer")


@record
class Settings:
    """The settings; None, 0 and empty are what nobody has set.

    Attributes:
        soft, log_placement, jit: of `ConfigProto`, or None.
        intra, inter: numbers of threads.
        optimizer: options of TF's graph optimizer by name.
        visible: numbers of the devices of a type that were not hidden.
        growing: names of the GPUs whose memory grows as it is needed.
        virtual: what physical devices were divided into, by their names.
        fraction: the part of the memory of GPUs that a process may take; 0.0 for all.
    """

    soft: bool | None = None
    log_placement: bool | None = None
    jit: bool | None = None
    intra: int = 0
    inter: int = 0
    optimizer: dict[str, Any] = field(default_factory=dict)
    visible: dict[str, tuple[int, ...]] = field(default_factory=dict)
    growing: set[str] = field(default_factory=set)
    virtual: dict[str, list[Any]] = field(default_factory=dict)
    fraction: float = 0.0


settings: Final = Settings()


def asked() -> Any:
    """A ConfigProto of what was set, or None where nothing was."""
    if settings == Settings():
        return None
    config = protos.ConfigProto(
        allow_soft_placement=bool(settings.soft),
        log_device_placement=bool(settings.log_placement),
        intra_op_parallelism_threads=settings.intra,
        inter_op_parallelism_threads=settings.inter,
    )
    if settings.jit is not None:
        levels = protos.OptimizerOptions
        config.graph_options.optimizer_options.global_jit_level = (
            levels.ON_1 if settings.jit else levels.OFF
        )
    _rewrites(config.graph_options.rewrite_options)
    for device_type, numbers in settings.visible.items():
        config.device_count[device_type] = len(numbers)
    if settings.virtual.get(FIRST_CPU):
        config.device_count["CPU"] = len(settings.virtual[FIRST_CPU])
    # A session takes all GPUs that this list does not leave out; an empty list would mean all.
    if settings.visible.get("GPU"):
        config.gpu_options.visible_device_list = ",".join(map(str, settings.visible["GPU"]))
    config.gpu_options.allow_growth = bool(settings.growing)
    config.gpu_options.per_process_gpu_memory_fraction = settings.fraction
    return config


def _rewrites(options: Any) -> None:
    for name, value in settings.optimizer.items():
        if name in _TOGGLES:
            rewriting = protos.RewriterConfig
            setattr(options, name, rewriting.ON if value else rewriting.OFF)
        elif name in (*_SWITCHES, "min_graph_nodes"):
            setattr(options, name, value)


def kept_options() -> dict[str, Any]:
    """The optimizer's options as `tf.config.optimizer.get_experimental_options` tells them."""
    given = settings.optimizer
    kept: dict[str, Any] = {name: bool(given[name]) for name in _TOGGLES if name in given}
    kept |= {name: bool(given.get(name, False)) for name in _SWITCHES}
    if given.get("min_graph_nodes"):
        kept["min_graph_nodes"] = given["min_graph_nodes"]
    return kept
