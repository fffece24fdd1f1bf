"""Bodies: the blocks of branches and loops, from the functions that their nodes hold.

A body takes its arguments where its node has them, and works there unless the user said otherwise.
Variables stay where they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from opdock import shapes
from opdock.compiler.clean.loops import passes_on
from opdock.compiler.clean.prune import doubt, is_doubted, prune
from opdock.compiler.ir.block import FEED, Block, Node, Value
from opdock.compiler.ir.order import root_of
from opdock.compiler.ir.state import is_state
from opdock.compiler.place.placer import Placer
from opdock.compiler.place.target import Target, memory_of
from opdock.graph.nodes.traits import Control, Moves
from opdock.shapes import Shape

if TYPE_CHECKING:
    from opdock.graph.control.func_graph import FuncGraph

__all__ = ["body", "elements_read", "stay", "tell"]


def body(function: FuncGraph, node: Node, first: int, freely: bool = False) -> Block:
    """The block of a function of a control-flow node.

    Args:
        function: a branch, a condition or a loop's body.
        node: placed where the arguments and results live.
        first: the index of the node's input that is the function's first argument.
        freely: whether arguments may have other shapes than the function was made for. They may
            where the shapes of the node's inputs say so.
    """
    feeds = [(t, t._dtype, t._shape) for t in function.inputs]
    block = prune(function.outputs, function.targets, feeds)
    block.within = node.name
    loops = node.traits.control is Control.LOOP
    given = node.inputs[first : first + len(feeds)]
    freely = freely or is_doubted(node) or not _fit(block.feeds, given)
    if freely:
        doubt(block)
    for i, value in enumerate(block.feeds):
        # Kernels may rely on the very array: a loop is given none that the caller could change.
        value.node.attrs["stays"] = loops and passes_on(node.attrs["body"], i)
        if not loops or (freely and value.node.attrs["stays"]):
            _narrow(value, given[i])
        home = _home(given[i])
        if home is not None:
            value.node.attrs["home"] = home
        value.node.target = home or node.target
        value.node.attrs["at"] = memory_of(value.node.target)
    if function is node.attrs.get("body"):
        block.cells = frozenset(i for i, t in enumerate(function.inputs) if t._dtype._is_ref_dtype)
    return block


def tell(block: Block, given: Sequence[Shape], elements: Mapping[int, Shape]) -> None:
    """Has a loop's function be one for variables that have the same shapes in all turns.

    Args:
        block: changed in place.
        given: the shapes of the variables; None for handles.
        elements: by the variables that are arrays or lists, the shapes of what is read there.
    """
    for feed, shape in zip(block.feeds, given, strict=True):
        if shape is not None:
            feed.node.has_shape(0, shape)
    for i, element in elements_read(block):
        if i in elements:
            element.node.has_shape(element.index, elements[i])


def elements_read(block: Block) -> Iterator[tuple[int, Value]]:
    """The elements of arrays and lists that a function reads, by the variables that those are."""
    found = {feed: i for i, feed in enumerate(block.feeds) if feed.dtype._is_handle}
    for node in block.nodes:
        i = found.get(node.inputs[0]) if node.inputs else None
        if i is None:
            continue
        if node.is_alias or node.traits.moves is Moves.GRADIENT:
            found[Value(node, 0)] = i
        elif node.traits.moves is Moves.READ:
            yield i, Value(node, 0)
        elif node.traits.moves is Moves.POP:
            yield i, Value(node, 1)


def stay(block: Block, home: Target, placer: Placer) -> None:
    """Asks for the device of a body's data, where the user asked for none in all of it."""
    if any(n.requested for n in block.nodes):
        return
    for node in block.nodes:
        if node.op == FEED:
            continue
        if node.builtin or placer.climb(node, home)[0] is not None:
            node.requested = home.name


def _home(given: Value) -> Target | None:
    """Where a variable has its value, if that is what an argument is: a body does not move it."""
    if not is_state(given):
        return None
    root: Node = root_of(given.node, {})
    return root.target if root.traits.holds else root.attrs.get("home")


def _fit(feeds: Sequence[Value], given: Sequence[Value]) -> bool:
    """Whether what is given may have the shapes that a function was made for."""
    return all(shapes.is_compatible(a.shape, b.shape) for a, b in zip(given, feeds, strict=True))


def _narrow(feed: Value, given: Value) -> None:
    """A branch runs with the shapes of this call; a loop's may change from turn to turn."""
    if shapes.is_compatible(given.shape, feed.shape):
        feed.node.has_shape(0, shapes.merge(given.shape, feed.shape))
