"""The pipeline: which pass runs when. Each pass has a name by which it can be switched off."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, Final

from opdock.compiler.clean import bodies
from opdock.compiler.clean.branches import branches
from opdock.compiler.clean.calls import calls
from opdock.compiler.clean.cse import cse
from opdock.compiler.clean.dead import dead
from opdock.compiler.clean.fold import Evaluate, fold
from opdock.compiler.clean.hoist import hoist
from opdock.compiler.clean.loops import loops
from opdock.compiler.clean.pieces import pieces
from opdock.compiler.clean.prune import as_written as written
from opdock.compiler.clean.prune import (
    doubt_variables,
    forget_claims,
    has_switches,
    prune,
    refine_shapes,
    reshaped_variables,
)
from opdock.compiler.clean.waits import waits
from opdock.compiler.emit.members import Bind, Members, OnHost
from opdock.compiler.emit.memory import MemoryPlan, plan_memory
from opdock.compiler.emit.overlap import Overlap, overlap, pauses, work_us
from opdock.compiler.emit.partition import borrow, partition, surrender
from opdock.compiler.emit.schedule import Schedule, schedule
from opdock.compiler.emit.segment import segments
from opdock.compiler.fuse.cluster import cluster
from opdock.compiler.fuse.patterns import fuse
from opdock.compiler.fuse.updates import updates
from opdock.compiler.ir.block import HOST, Block, Node
from opdock.compiler.ir.source import Source
from opdock.compiler.ir.state import is_state
from opdock.compiler.place.layout import layout
from opdock.compiler.place.placer import Placer, place
from opdock.compiler.place.target import Target, memory_of
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
from opdock.compiler.views.run import PluginPass, run_passes
from opdock.devices.router import Router
from opdock.devices.routes import RouteTable
from opdock.dtypes import DType
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.nodes.traits import Control
from opdock.late import record
from opdock.plugins.ownership import CORE_PASSES
from opdock.shapes import Shape

if TYPE_CHECKING:
    from opdock.compiler.emit.turns import Undecided, Whole
    from opdock.graph.control.func_graph import FuncGraph

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
OPTIONAL: Final = CORE_PASSES


Given = tuple[Tensor, DType, Shape, str]
"""A tensor with the type and shape of the value that it has, and where that lies."""


@record(slots=True)
class Options:
    """What a session asks of the compiler.

    Attributes:
        disabled: names of passes, and of fusion patterns, to leave out.
        extra: the passes of plugins that are on, in order.
        router: finds the ways between devices.
        relaxed: whether rewrites may change the last bits of results.
        threads: how many steps may run at the same time.
        cores: how many the machine has.
        one_core: whether kernels use one core each.
    """

    disabled: frozenset[str] = frozenset()
    extra: Sequence[PluginPass] = ()
    router: Router = field(default_factory=lambda: Router(RouteTable(), tuple))
    relaxed: bool = False
    threads: int = 1
    cores: int = 1
    one_core: bool = False

    @property
    def passes(self) -> AbstractSet[str]:
        """The optional passes that are on."""
        off = self.disabled if self.relaxed else self.disabled | {"relaxed"}
        return frozenset(OPTIONAL) - off


@record(frozen=True, slots=True)
class Compiled:
    """All that a program is bound from.

    Attributes:
        block: the placed nodes, copies among them.
        schedule: them as a line of steps over slots.
        plan: the buffers for the results.
        overlap: how the steps run on several threads, where that pays.
        pauses: the steps before which a program looks whether it is to end.
        once: of a loop's body, what no turn changes: it takes the body's arguments, and its results
            are further ones of `schedule`.
    """

    block: Block
    schedule: Schedule
    plan: MemoryPlan
    overlap: Overlap | None
    pauses: frozenset[int]
    once: Compiled | None = None

    def without_buffers(self) -> Compiled:
        """The same with no result in a planned buffer."""
        for step in self.schedule.steps:
            step.out, step.outs = None, ()
        return replace(self, plan=plan_memory(self.schedule, share=False))


@record(frozen=True, slots=True)
class CompiledLoop:
    """A loop.

    Attributes:
        condition, body: one turn.
        whole: many turns in one call; or why there is none, perhaps as shapes are not known.
    """

    condition: Compiled
    body: Compiled
    whole: Whole | Undecided | str


@record(slots=True)
class Compiler:
    """From blocks to what programs are bound from; `lower` is the order of all passes.

    Attributes:
        placer: finds devices and kernels.
        evaluate: computes a node whose inputs are constants.
        bind: makes a callable of a step.
        on_host: makes one of a node for the host, None where that has no kernel for it.
        options: of the session.
    """

    placer: Placer
    evaluate: Evaluate
    bind: Bind
    on_host: OnHost
    options: Options

    def step(
        self,
        fetches: Sequence[Tensor],
        targets: Sequence[Operation],
        feeds: Sequence[tuple[Tensor, DType, Shape]],
        as_written: bool = False,
        done: AbstractSet[Operation] = frozenset(),
    ) -> Compiled:
        """Compiles what a call of `Session.run` asks for.

        Args:
            fetches: whose values are wanted.
            targets: what else runs.
            feeds: the fed tensors, with the types and shapes of their values.
            as_written: places the nodes as the user wrote them, with no more known of them than
                when they were made: no pass may find out that something does not fit.
            done: operations that have run, as `Ahead` has it: what is needed of them is fed.

        Raises:
            InvalidArgumentError: shapes do not fit, or a node cannot be placed.
        """
        if done:
            targets = [op for op in targets if op not in done]
        block = written(fetches, targets, feeds, done) if done else prune(fetches, targets, feeds)
        if not as_written:
            given = [t for t, _, _ in feeds]
            block.source = Source(fetches, targets, given, done=frozenset(done))
            return self.lower(block)
        calls(block)
        return self._line_up(block, HOST)

    def branch(self, function: FuncGraph, node: Node) -> Compiled:
        """Compiles a branch of a placed node: see `bodies.body`."""
        home = node.target
        block = bodies.body(function, node, 1)
        block.source = Source(
            function.outputs, function.targets, function.inputs, home, memory_of(home)
        )
        return self.lower(block, home, memory_of(home))

    def rest(
        self, source: Source, given: Sequence[Given], done: AbstractSet[Operation]
    ) -> Compiled | None:
        """Compiles what is left of a step.

        Args:
            source: of the whole.
            given: the values that there are.
            done: operations that must not run again, and whose values, if needed, are given.

        Returns:
            None where conditions and loops of version 1 are in it, which become one function.
        """
        targets = [op for op in source.targets if op not in done]
        feeds = [(t, dtype, shape) for t, dtype, shape, _ in given]
        if has_switches(source.fetches, targets, feeds):
            return None
        block = written(source.fetches, targets, feeds, done)
        for value, (*_, lies) in zip(block.feeds, given, strict=True):
            home = next((t for t in self.placer.targets if t.name == lies), None)
            value.node.attrs["at"] = lies
            if is_state(value):
                value.node.attrs["home"] = home
            value.node.target = home
        block.cells = source.cells
        block.source = replace(source, targets=targets, feeds=[t for t, *_ in given])
        return self.lower(block, source.home, source.results_at)

    def loop(self, node: Node, freely: bool = False) -> CompiledLoop:
        """Compiles the functions of a placed loop.

        Args:
            node: the loop.
            freely: for values of any shapes, whatever the program says of these.
        """
        home = node.target
        condition, body = self._bodies(node, freely)
        found: Whole | Undecided | str = "the pass 'turns' is off"
        if freely:
            found = "values had other shapes than set_shape said"
        elif "turns" in self.options.passes:
            # Most programs have no loop.
            from opdock.compiler.emit.turns import whole

            found = whole(node, condition, body, self.placer)
        return CompiledLoop(
            self._finish(condition, home, HOST), self._finish(body, home, memory_of(home)), found
        )

    def turns(
        self, node: Node, given: Sequence[Shape], elements: Mapping[int, Shape]
    ) -> Whole | str:
        """Many turns of a loop in one call, for shapes that are the same in all turns; or why not.

        Args:
            node: the loop.
            given, elements: what `bodies.tell` says of a loop's functions.
        """
        from opdock.compiler.emit.turns import Undecided, whole

        condition, body = self._bodies(node, told=(given, elements))
        found = whole(node, condition, body, self.placer)
        return found.why if isinstance(found, Undecided) else found

    def sums(self, whole: Whole) -> Compiled | None:
        """What many turns of a loop have kept, added up; None where they keep nothing."""
        home = whole.node.target
        return None if whole.sums is None else self._finish(whole.sums.block, home, memory_of(home))

    def _bodies(
        self, node: Node, freely: bool = False,
        told: tuple[Sequence[Shape], Mapping[int, Shape]] | None = None,
    ) -> list[Block]:  # fmt: skip
        """The blocks of a loop's condition and body, before they are placed."""
        home = node.target
        blocks = []
        # The host decides whether a loop goes on.
        for name, results_at in zip(Control.LOOP.functions, (HOST, memory_of(home)), strict=True):
            function = node.attrs[name]
            block = bodies.body(function, node, 0, freely)
            block.source = Source(
                function.outputs, function.targets, function.inputs, home, results_at, block.cells
            )
            if told is not None:
                bodies.tell(block, *told)
            self._clean(block, home)
            blocks.append(block)
        return blocks

    def lower(self, block: Block, home: Target | None = None, results_at: str = HOST) -> Compiled:
        """Compiles a pruned block.

        Args:
            block: changed in place.
            home: of a body, the device of its arguments, where its work stays if it can.
            results_at: where the results must end.
        """
        self._clean(block, home)
        return self._finish(block, home, results_at)

    def _clean(self, block: Block, home: Target | None) -> None:
        """All that comes before placement."""
        calls(block)
        self.placer.experience.mark(block.nodes)
        self._doubt(block)
        refine_shapes(block)
        if home is not None:
            bodies.stay(block, home, self.placer)
        self._improve(block)

    def _doubt(self, block: Block) -> None:
        """Relies on no shape of a variable that has had another, or may get one here."""
        experience = self.placer.experience
        for name in set(reshaped_variables(block)) - experience.loose:
            experience.loosen(name)
        doubt_variables(block, experience.loose)

    def _finish(self, block: Block, home: Target | None, results_at: str) -> Compiled:
        """What comes after `_clean`."""
        place = memory_of(home)
        once = None
        if home is not None and "hoist" in self.options.passes:
            first = hoist(block, place == HOST)
            once = None if first is None else self._line_up(first, place)
        made = self._line_up(block, results_at)
        if home is None:  # of a body, what is around it is compiled for the shapes of its results
            forget_claims(block)
        return replace(made, once=once)

    def _improve(self, block: Block) -> None:
        """The passes that ask for no device."""
        on = self.options.passes
        if "pieces" in on:
            pieces(block)
        if "fold" in on:
            fold(block, self.evaluate)
        while "branches" in on and branches(block, self.evaluate):
            # A branch may hold conditions of its own, and shapes that were unknown outside of it.
            if "fold" not in on:
                break
            fold(block, self.evaluate)
        if "loops" in on:
            loops(block)
        if "dead" in on:
            dead(block)
            waits(block)
        rules = {name: rules for name, rules in RULES.items() if name in on}
        constants = rewrite(block, rules, self.placer.serves)
        if constants and "fold" in on:
            fold(block, self.evaluate)
        if "cse" in on:
            cse(block)
        run_passes(block, "before_place", self.options.extra, self.placer)

    def _line_up(self, block: Block, results_at: str) -> Compiled:
        """Placement and all that follows."""
        on, options = self.options.passes, self.options
        self._place(block, results_at)
        if "segments" in on:
            members = Members(self.bind, self.on_host, self._functions)
            segments(block, self.placer.experience, members)
        surrender(block)
        borrow(block)
        lined_up = schedule(block)
        plan = plan_memory(lined_up, share="memory" in on)
        work = [work_us(step) for step in lined_up.steps]
        spread = overlap(lined_up.steps, work, options.threads, options.cores, options.one_core)
        return Compiled(block, lined_up, plan, spread, pauses(lined_up.steps, work))

    def _place(self, block: Block, results_at: str) -> None:
        """Placement, what asks for placed nodes, and the copies between devices."""
        on, options = self.options.passes, self.options
        place(block, self.placer)
        run_passes(block, "after_place", options.extra, self.placer)
        # What follows sees placed nodes, and runs before copies exist.
        if "layout" in on:
            layout(block, self.placer)
        if "fuse" in on:
            fuse(block, self.placer, options.disabled)
        before = None
        if "cluster" in on:
            before = cluster(block, self.placer, once="cse" in on)
        if "updates" in on:
            updates(block, self.placer, before)
        run_passes(block, "after_fuse", options.extra, self.placer)
        partition(block, options.router, results_at)

    def _functions(self, node: Node) -> dict[str, Block]:
        """The functions of a placed control-flow node as blocks that end where they begin."""
        cond = node.traits.control is Control.COND
        found = {}
        for name in node.traits.control.functions:
            block = found[name] = bodies.body(node.attrs[name], node, int(cond))
            self.placer.experience.mark(block.nodes)
            self._doubt(block)
            refine_shapes(block)
            assert node.target is not None
            bodies.stay(block, node.target, self.placer)
            self._improve(block)
            self._place(block, memory_of(node.target))
        return found

    def only_copies(self, block: Block) -> Compiled:
        """Placed nodes as they are, to run once; results stay where they are made."""
        partition(block, self.options.router, None)
        lined_up = schedule(block)
        return Compiled(block, lined_up, plan_memory(lined_up, share=False), None, frozenset())


# RewriterConfig's names for what passes here do; each is off where its toggle says OFF.
_TOGGLES: Final = {
    "constant_folding": ("fold", "branches"),
    "loop_optimization": ("loops", "hoist", "turns"),
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
        return frozenset(OPTIONAL) - {"memory", "segments"}
    return frozenset(
        name for key, names in _TOGGLES.items() if getattr(toggles, key) == _OFF for name in names
    )


def disables_plugins(config: Any) -> bool:
    """Whether a ConfigProto switches every optional pass off, those of plugins among them."""
    options = config.graph_options
    return bool(
        options.optimizer_options.opt_level == -1 or options.rewrite_options.disable_meta_optimizer
    )


def relaxed_by(config: Any) -> bool:
    """Whether a ConfigProto allows rewrites that change the last bits of results."""
    toggles = config.graph_options.rewrite_options
    return bool(toggles.arithmetic_optimization == _AGGRESSIVE)
