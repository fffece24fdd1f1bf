"""Whether every op is whole: shape function, samples, error samples, reference, gradient."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from opdock.graph.nodes import registry
from opdock.graph.nodes.registry import OpSpec
from opdock.testing.harness.exemptions import EXEMPT, NO_ERROR_SAMPLE, Part
from opdock.testing.harness.misuse import error_samples_of
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
        lacking: list[str] = [
            p for p in missing_parts(spec) if exempt is None or not exempt.covers(p)
        ]
        # What cannot be called cannot be called wrongly.
        called = exempt is None or not exempt.covers("samples")
        if called and spec.name not in NO_ERROR_SAMPLE and not _has_error_sample(spec):
            lacking.append("error samples")
        if lacking:
            yield f"{spec.name} lacks {', '.join(lacking)}"


def _has_error_sample(spec: OpSpec) -> bool:
    return next(iter(error_samples_of(spec)), None) is not None


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
    for op in NO_ERROR_SAMPLE:
        spec = registry.find(op)
        if spec is None:
            yield f"{op} needs no error sample, but is not registered"
        elif _has_error_sample(spec):
            yield f"{op} needs no error sample, but has one"
