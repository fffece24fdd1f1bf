"""What an op family needs to define ops; the registry itself is part of the graph layer."""

from __future__ import annotations

from opdock.graph.nodes.registry import (
    GradientFn,
    OpSpec,
    RegisterGradient,
    ShapeSig,
    all_ops,
    define_op,
    find,
    get,
    gradient_of,
    keeps_slices,
    not_differentiable,
)
from opdock.shapes import Shape

__all__ = [
    "GradientFn",
    "OpSpec",
    "RegisterGradient",
    "Shape",
    "ShapeSig",
    "all_ops",
    "define_op",
    "find",
    "get",
    "gradient_of",
    "keeps_slices",
    "not_differentiable",
]
