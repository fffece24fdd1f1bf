"""`Source`: what of the user's graph a block was made from, so that a part can be made again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from opdock.compiler.ir.block import HOST
from opdock.late import record

if TYPE_CHECKING:
    from opdock.compiler.place.target import Target
    from opdock.graph.nodes.operation import Operation, Tensor

__all__ = ["Source"]


@record(frozen=True, slots=True)
class Source:
    """The user's names for what a block takes and gives.

    Attributes:
        fetches: the tensors that are wanted.
        targets: what else runs.
        feeds: the tensors that the caller passes, in order.
        home: of a branch, the device where its arguments are.
        results_at: where the results must end.
        cells: indices of fetches that are a variable itself, not its value.
        done: operations that ran before: what is needed of them is fed.
    """

    fetches: Sequence[Tensor]
    targets: Sequence[Operation]
    feeds: Sequence[Tensor]
    home: Target | None = None
    results_at: str = HOST
    cells: frozenset[int] = frozenset()
    done: frozenset[Operation] = frozenset()
