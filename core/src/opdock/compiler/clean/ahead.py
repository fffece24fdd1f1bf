"""What a step takes from outside, iterators and queues: it can be taken before all else.

Only when an element has come is it known what shape it has, the number of examples in a batch say.
Whoever takes it first compiles what is left for arrays, as for those that a caller feeds.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING

from opdock import shapes
from opdock.compiler.clean.prune import has_switches
from opdock.graph.control.function_op import behind
from opdock.late import record

if TYPE_CHECKING:
    from opdock.dtypes import DType
    from opdock.graph.nodes.operation import Operation, Tensor
    from opdock.graph.nodes.traits import Traits
    from opdock.shapes import Shape

__all__ = ["Ahead", "ahead"]


@record(frozen=True, slots=True)
class Ahead:
    """What can come before the rest of a step.

    Attributes:
        takers: the operations that take, in the order in which they were made.
        results: what they give.
    """

    takers: tuple[Operation, ...]
    results: tuple[Tensor, ...]

    @property
    def done(self) -> AbstractSet[Operation]:
        """What must not run again."""
        return frozenset(self.takers)


def ahead(
    fetches: Sequence[Tensor],
    targets: Sequence[Operation],
    feeds: Sequence[tuple[Tensor, DType, Shape]],
) -> Ahead | None:
    """What a step can take before all else, where its shapes are not known until then.

    None where what comes has a known shape or is no data, where nothing is computed from it, where
    something with an effect comes before it, or where the step might wait for itself: it does
    something else with the same iterator or queue, or with another that others may wait for.

    Args:
        fetches, targets, feeds: as `Compiler.step` has them.
    """
    fed = {t for t, _, _ in feeds}
    roots = [*(t.op for t in fetches if t not in fed), *targets]
    if not any(graph._may_have(_takes) for graph in {op.graph for op in roots}):
        return None
    needed = behind(roots, fed)
    takers = [op for op in needed if op._spec.traits.takes]
    if not takers:
        return None
    takers.sort(key=lambda op: op._id)
    results = tuple([t for op in takers for t in op.outputs])
    if all(shapes.is_fully_defined(t._shape) for t in results):
        return None
    if not all(t.dtype._is_data and t not in fed for t in results):
        return None
    before = behind(takers, fed)
    if needed == before or not all(op.spec.traits.takes or _free(op) for op in before):
        return None
    handles = {op.inputs[0] for op in takers}
    if any(op.spec.traits.blocks or handles.intersection(op.inputs) for op in needed - before):
        return None
    if has_switches(fetches, targets, feeds):
        return None
    return Ahead(tuple(takers), results)


def _takes(traits: Traits) -> bool:
    return traits.takes


def _free(op: Operation) -> bool:
    """Whether an operation may as well run twice in a step."""
    spec = op.spec
    if not op.inputs and not any(t.dtype._is_data for t in op.outputs):
        return True  # it makes what a handle names, or finds what it has made
    return not (
        spec.has_effect or spec.traits.random or spec.traits.blocks or spec.traits.holds
        or any(a.is_ref for a in spec.definition.inputs)
    )  # fmt: skip
