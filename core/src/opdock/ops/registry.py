"""What an op family needs to define ops; the registry itself is part of the graph layer."""

from __future__ import annotations

from opdock.graph.nodes.gradient_registry import (
    RegisterGradient,
    gradient_of,
    keeps_slices,
    not_differentiable,
)
from opdock.graph.nodes.registry import (
    GradientFn,
    OpSpec,
    PartialShape,
    ShapeSig,
    all_ops,
    define_op,
    find,
    get,
)
from opdock.graph.nodes.traits import (
    AlongAxis,
    Control,
    Cost,
    DropsAxes,
    Elementwise,
    Fails,
    Formatted,
    PerAxis,
    Reduction,
    Traits,
)
from opdock.shapes import Shape

__all__ = [
    "AlongAxis", "Control", "Cost", "DropsAxes", "Elementwise", "Fails", "Formatted",
    "GradientFn", "OpSpec", "PartialShape", "PerAxis", "Reduction", "RegisterGradient",
    "Shape", "ShapeSig", "Traits", "all_ops", "define_op", "find", "get", "gradient_of",
    "keeps_slices", "not_differentiable",
]  # fmt: skip
