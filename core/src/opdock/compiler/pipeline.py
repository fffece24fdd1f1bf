"""The pipeline: which pass runs when. Each pass has a name by which it can be switched off."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any, Final

from opdock.compiler.clean.branches import branches
from opdock.compiler.clean.cse import cse
from opdock.compiler.clean.dead import dead
from opdock.compiler.clean.fold import Evaluate, fold
from opdock.compiler.clean.loops import loops
from opdock.compiler.clean.prune import prune, refine_shapes
from opdock.compiler.clean.waits import waits
from opdock.compiler.emit.memory import MemoryPlan, plan_memory
from opdock.compiler.emit.partition import partition
from opdock.compiler.emit.schedule import Schedule, schedule
from opdock.compiler.fuse.cluster import cluster
from opdock.compiler.fuse.patterns import fuse
from opdock.compiler.ir.block import HOST, Block
from opdock.compiler.place.layout import layout
from opdock.compiler.place.placer import Placer, place
from opdock.compiler.rules import (
    algebra,
    facts,
    padding,
    pools,
    relaxed,
    reshapes,
    simplify,
    transposes,
)
from opdock.compiler.rules.rewrite import Rules, rewrite
from opdock.devices.router import Router
from opdock.devices.routes import RouteTable
from opdock.dtypes import DType
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.shapes import Shape

Pass = Callable[[Block], None]
# The passes that are rules, in the order in which their rules are tried on a node.
RULES: Final[dict[str, Rules]] = {
    "simplify": simplify.RULES,
    "facts": facts.RULES,
    "transposes": transposes.RULES,
    "reshapes": reshapes.RULES,
    "algebra": algebra.RULES,
    "padding": padding.RULES,
    "pools": pools.RULES,
    "relaxed": relaxed.RULES,
}
OPTIONAL: Final = (
    "fold", "branches", "loops", "dead", *RULES, "cse", "hoist", "layout", "fuse", "cluster",
    "memory",
)  # fmt: skip
STAGES: Final = ("before_place", "after_place", "after_fuse")


@dataclass(slots=True)
class Options:
    """What a session asks of the compiler.

    Attributes:
        disabled: names of passes, and of fusion patterns, to leave out.
        extra: passes of plugins by stage, in order: (name, function).
        router: finds the ways between devices.
        relaxed: whether rewrites may change the last bits of results.
    """

    disabled: frozenset[str] = frozenset()
    extra: dict[str, list[tuple[str, Pass]]] = field(default_factory=dict)
    router: Router = field(default_factory=lambda: Router(RouteTable(), tuple))
    relaxed: bool = False

    @property
    def passes(self) -> AbstractSet[str]:
        """The optional passes that are on."""
        off = self.disabled if self.relaxed else self.disabled | {"relaxed"}
        return frozenset(OPTIONAL) - off


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
    """The passes after pruning."""
    improve(block, evaluate, options)
    return line_up(block, placer, options, results_at)


def improve(block: Block, evaluate: Evaluate, options: Options) -> None:
    """The passes that ask for no device, in place."""
    _before_place(block, evaluate, options.passes)
    _plugins(block, options, "before_place")


def line_up(
    block: Block, placer: Placer, options: Options, results_at: str = HOST
) -> tuple[Block, Schedule, MemoryPlan]:
    """Placement and all that follows; a function body's results stay on its own device."""
    on = options.passes
    place(block, placer)
    _plugins(block, options, "after_place")
    # What follows sees placed nodes, and runs before copies exist.
    if "layout" in on:
        layout(block, placer)
    if "fuse" in on:
        fuse(block, placer, options.disabled)
    if "cluster" in on:
        cluster(block, placer)
    _plugins(block, options, "after_fuse")
    partition(block, options.router, results_at)
    lined_up = schedule(block)
    plan = plan_memory(lined_up) if "memory" in on else plan_memory(lined_up, share=False)
    return block, lined_up, plan


def _before_place(block: Block, evaluate: Evaluate, on: AbstractSet[str]) -> None:
    """The passes that ask for no device."""
    if "fold" in on:
        fold(block, evaluate)
    while "branches" in on and branches(block, evaluate):
        # A branch may hold conditions of its own, and shapes that were unknown outside of it.
        if "fold" not in on:
            break
        fold(block, evaluate)
    if "loops" in on:
        loops(block)
    if "dead" in on:
        dead(block)
        waits(block)
    constants = rewrite(block, {name: rules for name, rules in RULES.items() if name in on})
    if constants and "fold" in on:
        fold(block, evaluate)
    if "cse" in on:
        cse(block)


def _plugins(block: Block, options: Options, stage: str) -> None:
    for name, run in options.extra.get(stage, ()):
        if name not in options.disabled:
            run(block)


# RewriterConfig's names for what passes here do; each is off where its toggle says OFF.
_TOGGLES: Final = {
    "constant_folding": ("fold", "branches"),
    "loop_optimization": ("loops", "hoist"),
    "dependency_optimization": ("dead",),
    "arithmetic_optimization": (*RULES, "cse"),
    "layout_optimizer": ("layout",),
    "remapping": ("fuse",),
}
_OFF: Final = 2
_AGGRESSIVE: Final = 3


def disabled_by(config: Any) -> frozenset[str]:
    """The passes that a ConfigProto's optimizer and rewrite options switch off."""
    options = config.graph_options.optimizer_options
    if options.opt_level == -1:
        return frozenset(OPTIONAL)
    toggles = config.graph_options.rewrite_options
    if toggles.disable_meta_optimizer:
        return frozenset(OPTIONAL) - {"memory"}
    return frozenset(
        name for key, names in _TOGGLES.items() if getattr(toggles, key) == _OFF for name in names
    )


def relaxed_by(config: Any) -> bool:
    """Whether a ConfigProto allows rewrites that change the last bits of results."""
    toggles = config.graph_options.rewrite_options
    return bool(toggles.arithmetic_optimization == _AGGRESSIVE)
