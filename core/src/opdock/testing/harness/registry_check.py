"""Whether every registered op is whole: shape function, samples, reference, gradient."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from opdock.graph.nodes import registry
from opdock.graph.nodes.registry import OpSpec
from opdock.testing.harness.exemptions import EXEMPT, Part
from opdock.testing.harness.sample import sample_sets_for
from opdock.testing.reference._registry import reference_for

__all__ = ["missing_parts", "problems", "stale_exemptions"]


def _gradient(spec: OpSpec) -> bool:
    """Whether there is a gradient, or a statement that there is none.

    The statement may be a function that raises TF's LookupError.
    """
    return spec.gradient_fn is not None or not spec.is_differentiable


_PARTS: Mapping[Part, Callable[[OpSpec], bool]] = {
    "shape": lambda spec: spec.shape_fn is not None,
    "samples": lambda spec: bool(sample_sets_for(spec.name)),
    "reference": lambda spec: reference_for(spec.name) is not None,
    "gradient": _gradient,
}


def missing_parts(spec: OpSpec) -> list[Part]:
    """The parts that an op lacks, exempt or not."""
    return [part for part, has in _PARTS.items() if not has(spec)]


def problems() -> Iterator[str]:
    """One line per op of opdock's that lacks a part without being exempt from it.

    An op with a namespace ("acme>Twist") is a plugin's, whose samples come by a hook.
    """
    for spec in registry.all_ops():
        if ">" in spec.name:
            continue
        exempt = EXEMPT.get(spec.name)
        lacking = [p for p in missing_parts(spec) if exempt is None or not exempt.covers(p)]
        if lacking:
            yield f"{spec.name} lacks {', '.join(lacking)}"


def stale_exemptions() -> Iterator[str]:
    """One line per exemption that has nothing left to excuse."""
    for op, exempt in EXEMPT.items():
        spec = registry.find(op)
        if spec is None:
            yield f"{op} is exempt but not registered"
            continue
        kept = exempt.parts & set(missing_parts(spec))
        for part in sorted(exempt.parts - kept):
            yield f"{op} is exempt from {part}, which it has"
