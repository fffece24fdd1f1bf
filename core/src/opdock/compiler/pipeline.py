"""The pipeline: which pass runs when. Each pass has a name by which it can be switched off."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from opdock.compiler.cluster import cluster
from opdock.compiler.cse import cse
from opdock.compiler.fold import Evaluate, fold
from opdock.compiler.fuse import fuse
from opdock.compiler.ir import HOST, Block
from opdock.compiler.memory import MemoryPlan, plan_memory
from opdock.compiler.partition import partition
from opdock.compiler.place import Placer, place
from opdock.compiler.prune import prune, refine_shapes
from opdock.compiler.schedule import Schedule, schedule
from opdock.compiler.simplify import simplify
from opdock.devices.router import Router
from opdock.devices.routes import RouteTable
from opdock.dtypes import DType
from opdock.graph.operation import Operation, Tensor
from opdock.shapes import Shape

Pass = Callable[[Block], None]
OPTIONAL: Final = ("fold", "cse", "simplify", "fuse", "cluster", "memory")
STAGES: Final = ("before_place", "after_place", "after_fuse")


@dataclass(slots=True)
class Options:
    """What a session asks of the compiler.

    Attributes:
        disabled: names of passes, and of fusion patterns, to leave out.
        extra: passes of plugins by stage, in order: (name, function).
        router: finds the ways between devices.
    """

    disabled: frozenset[str] = frozenset()
    extra: dict[str, list[tuple[str, Pass]]] = field(default_factory=dict)
    router: Router = field(default_factory=lambda: Router(RouteTable(), tuple))


def lower(
    fetches: Sequence[Tensor],
    targets: Sequence[Operation],
    feeds: Sequence[tuple[Tensor, DType, Shape]],
    placer: Placer,
    evaluate: Evaluate,
    options: Options,
) -> tuple[Block, Schedule, MemoryPlan]:
    """Compiles up to, but not including, the binding of kernels.

    Raises:
        InvalidArgumentError: shapes do not fit, or a node cannot be placed.
    """
    block = prune(fetches, targets, feeds)
    refine_shapes(block)
    return finish(block, placer, evaluate, options)


def finish(
    block: Block, placer: Placer, evaluate: Evaluate, options: Options, results_at: str = HOST
) -> tuple[Block, Schedule, MemoryPlan]:
    """The passes after pruning; function bodies enter here, with results on their own device."""
    on = [name for name in OPTIONAL if name not in options.disabled]
    if "fold" in on:
        fold(block, evaluate)
    if "cse" in on:
        cse(block)
    if "simplify" in on:
        simplify(block)
    _plugins(block, options, "before_place")
    place(block, placer)
    _plugins(block, options, "after_place")
    # The seam for layout, too: passes here see placed nodes and run before copies exist.
    if "fuse" in on:
        fuse(block, placer, options.disabled)
    if "cluster" in on:
        cluster(block, placer)
    _plugins(block, options, "after_fuse")
    partition(block, options.router, results_at)
    lined_up = schedule(block)
    plan = plan_memory(lined_up) if "memory" in on else plan_memory(lined_up, share=False)
    return block, lined_up, plan


def _plugins(block: Block, options: Options, stage: str) -> None:
    for name, run in options.extra.get(stage, ()):
        if name not in options.disabled:
            run(block)


def disabled_by(config: Any) -> frozenset[str]:
    """The passes that a ConfigProto's optimizer options switch off."""
    options = config.graph_options.optimizer_options
    if options.opt_level == -1:
        return frozenset(OPTIONAL)
    return frozenset()
