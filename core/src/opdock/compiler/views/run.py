"""Running the plugins' passes: in order, each answerable for what it does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING

from opdock import errors
from opdock.compiler.ir.block import Block
from opdock.compiler.views.graph import GraphView
from opdock.failures import failures
from opdock.late import record

if TYPE_CHECKING:
    from opdock.compiler.place.placer import Placer

__all__ = ["PluginPass", "run_passes"]


@record(frozen=True, slots=True)
class PluginPass:
    """A pass that is on.

    Attributes:
        name: the pass's.
        plugin: who brought it.
        stage: when it runs.
        run: takes the graph, and returns None, or the graph that counts.
    """

    name: str
    plugin: str
    stage: str
    run: Callable[[GraphView], GraphView | None]

    def __str__(self) -> str:
        return f"graph pass '{self.name}' of plugin '{self.plugin}'"


def run_passes(block: Block, stage: str, passes: Sequence[PluginPass], placer: Placer) -> None:
    """Runs the passes of a stage on a block, which is changed in place.

    Raises:
        OpError: a pass failed; the message names it, its plugin and the stage.
    """
    for one in passes:
        if one.stage == stage:
            _run(block, stage, one, placer)


def _run(block: Block, stage: str, one: PluginPass, placer: Placer) -> None:
    before = block.nodes  # which stays as it is: a changed block has another list
    view = GraphView(block, stage, str(one), placer)
    try:
        answer = one.run(view)
        result = view if answer is None else answer
        if not isinstance(result, GraphView):
            raise TypeError(f"a pass returns a GraphView or None, got {result!r}")
        result._settle()
    except failures() as e:
        raise _told(e, f"{one} failed at {stage}") from e
    if result is not view:
        for field in fields(Block):
            setattr(block, field.name, getattr(result._block, field.name))
    if result._changed:
        left = {n.name for n in block.nodes}  # by name: of a copy the nodes are others
        block.folded += [
            (n.name, n.op, f"{one}: not needed any more") for n in before if n.name not in left
        ]


def _told(error: BaseException, where: str) -> errors.OpError:
    if isinstance(error, errors.OpError):
        same: type[errors.OpError] = type(error)
        return same(error.node_def, error.op, f"{where}: {error.message}")
    text = f"{where}: {type(error).__name__}: {error}"
    return errors.InternalError(None, None, text)
