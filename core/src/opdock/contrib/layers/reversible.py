"""Reversible residual blocks (Gomez et al. 2017, arXiv:1707.04585): inputs are found of outputs.

So that no activation of a block has to be kept until its gradients are computed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from opdock.api import logging
from opdock.autodiff.custom import fenced_call
from opdock.autodiff.gradients import gradients
from opdock.contrib.layers.recomputing import wrapped_like
from opdock.graph.variables.variable_scope import get_variable_scope, variable_scope
from opdock.layers.base import Layer
from opdock.ops.control import tuple as gated
from opdock.ops.identity import stop_gradient
from opdock.ops.sums import add_n
from opdock.util import nest

__all__ = ["RevBlock", "rev_block"]

_PART = re.compile(r".*revlayer_([0-9]*)/([fg])/.*")


def _sums(*lists: Sequence[Any]) -> list[Any]:
    """The sums of gradients of the same, None where there is none."""
    found = []
    for grads in zip(*lists, strict=True):
        known = [g for g in grads if g is not None]
        found.append(add_n(known) if known else None)
    return found


def _called(function: Callable[..., Any], x: Any, side: Sequence[Any]) -> Any:
    return function(x, list(side)) if side else function(x)


class RevBlock(Layer):
    """Layers `y1 = x1 + f(x2); y2 = x2 + g(y1)`, one upon the other.

    Its variables are those that `f` and `g` make, which are resources.

    Args:
        f, g: functions from a tensor to one of its shape, or a list of one for each layer; where
            there are side inputs, they take them, a list, as the second argument.
        num_layers: how many layers there are.
        f_side_input, g_side_input: further tensors for `f` and `g`.
        use_efficient_backprop: whether gradients compute inputs of outputs.
        name, **kwargs: as of any layer.
    """

    def __init__(
        self, f: Any, g: Any, num_layers: int = 1, f_side_input: Sequence[Any] | None = None,
        g_side_input: Sequence[Any] | None = None, use_efficient_backprop: bool = True,
        name: str = "revblock", **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(name=name, **kwargs)
        self.num_layers = num_layers
        self.f, self.g = self._scoped(f, "f"), self._scoped(g, "g")
        self.f_side_input, self.g_side_input = list(f_side_input or ()), list(g_side_input or ())
        self._use_efficient_backprop = use_efficient_backprop

    def _scoped(self, given: Any, kind: str) -> list[Callable[..., Any]]:
        each = given if isinstance(given, list) else [given] * self.num_layers
        assert len(each) == self.num_layers

        def wrapped(function: Callable[..., Any], scope: str) -> Callable[..., Any]:
            @wrapped_like(function)
            def inside(*args: Any) -> Any:
                with variable_scope(scope, use_resource=True):
                    return function(*args)

            return inside  # type: ignore[no-any-return]

        return [wrapped(one, f"revlayer_{i}/{kind}") for i, one in enumerate(each)]

    def build(self, input_shape: Any) -> None:
        """Leaves it to the first call to make variables."""
        logging.warning("RevBlock constructs its variables on first call, not on build.")
        self.built = True

    def forward(self, x1: Any, x2: Any) -> Any:
        """The outputs of two inputs."""
        return self([x1, x2])

    def backward(self, y1: Any, y2: Any) -> Any:
        """The inputs of two outputs."""
        return self([y1, y2], forward=False)

    def call(self, inputs: Any, forward: bool = True) -> Any:
        """The outputs of inputs, or the inputs of outputs."""
        scope = get_variable_scope()
        before = len(scope.global_variables())
        found = (self._forward if forward else self._inverse)(*inputs)
        trained = {id(v) for v in scope.trainable_variables()}
        for made in scope.global_variables()[before:]:
            kept = id(made) in trained
            (self._trainable_weights if kept else self._non_trainable_weights).append(made)
        return found

    def _inverse(self, y1: Any, y2: Any) -> tuple[Any, Any]:
        for f, g in zip(reversed(self.f), reversed(self.g), strict=True):
            y2 = y2 - _called(g, y1, self.g_side_input)
            y1 = y1 - _called(f, y2, self.f_side_input)
        return y1, y2

    def _forward(self, x1: Any, x2: Any) -> Any:
        count = len(self.f_side_input)

        def layers(x1: Any, x2: Any, *side: Any) -> tuple[Any, Any]:
            for f, g in zip(self.f, self.g, strict=True):
                x1 = x1 + _called(f, x2, side[:count])
                x2 = x2 + _called(g, x1, side[count:])
                if self._use_efficient_backprop:
                    x1, x2 = gated([x1, x2])
            return x1, x2

        def with_gradient(*args: Any) -> Any:
            outputs = layers(*args)
            return outputs, self._gradient(args, outputs)

        side = [*self.f_side_input, *self.g_side_input]
        if self._use_efficient_backprop:
            return fenced_call(with_gradient, x1, x2, *side)
        return layers(x1, x2, *side)

    def _gradient(self, args: Sequence[Any], outputs: Any) -> Callable[..., Any]:
        count = len(self.f_side_input)
        sides = {"f": list(args[2 : 2 + count]), "g": list(args[2 + count :])}

        def gradient(*grads: Any, variables: Sequence[Any] = ()) -> Any:
            own: dict[tuple[int, str], list[Any]] = {}
            for variable in variables:
                part = _PART.match(variable.name)
                assert part is not None, f"{variable.name} is of none of the layers"
                own.setdefault((int(part[1]), part[2]), []).append(variable)
            of_variables: dict[int, Any] = {}
            of_sides: dict[str, list[list[Any]]] = {"f": [], "g": []}
            state, grads_now = outputs, grads
            with variable_scope(self.scope_name, reuse=True):
                for i in reversed(range(self.num_layers)):
                    mine = {kind: own.get((i, kind), []) for kind in "fg"}
                    state, grads_now, found = _layer_backward(
                        state, grads_now, self.f[i], self.g[i], mine, sides
                    )
                    for kind, (weights, side) in found.items():
                        pairs = zip(mine[kind], weights, strict=True)
                        of_variables.update((id(v), grad) for v, grad in pairs)
                        of_sides[kind].append(side)
            side_grads = [*_sums(*of_sides["f"]), *_sums(*of_sides["g"])]
            of_inputs = [*grads_now, *side_grads]
            return of_inputs, [of_variables.get(id(v)) for v in variables]

        return gradient


def _layer_backward(
    outputs: Any, grads: Any, f: Any, g: Any, own: dict[str, list[Any]],
    sides: dict[str, list[Any]],
) -> tuple[Any, Any, dict[str, Any]]:  # fmt: skip
    """The inputs of a layer, their gradients, and those of variables and side inputs of each."""
    (y1, y2), (grad_y1, grad_y2) = outputs, grads
    y1 = stop_gradient(y1)
    g_side, f_side = ([stop_gradient(t) for t in sides[kind]] for kind in "gf")
    gy1 = _called(g, y1, g_side)
    x2 = stop_gradient(y2 - gy1)
    fx2 = _called(f, x2, f_side)
    x1 = y1 - fx2
    of_g = gradients(gy1, [y1, *own["g"], *g_side], grad_y2)
    grad_x1 = grad_y1 + of_g[0]
    of_f = gradients(fx2, [x2, *own["f"], *f_side], grad_x1)
    grad_x2 = grad_y2 + of_f[0]

    def parted(found: list[Any], kind: str) -> tuple[list[Any], list[Any]]:
        count = len(own[kind])
        return found[1 : 1 + count], found[1 + count :]

    result = ((x1, x2), (grad_x1, grad_x2), {"f": parted(of_f, "f"), "g": parted(of_g, "g")})
    packed: Any = nest.pack_sequence_as(result, gated(nest.flatten(result)))
    return packed  # type: ignore[no-any-return]


def rev_block(
    x1: Any, x2: Any, f: Any, g: Any, num_layers: int = 1,
    f_side_input: Sequence[Any] | None = None, g_side_input: Sequence[Any] | None = None,
    is_training: bool = True,
) -> Any:  # fmt: skip
    """The outputs of a `RevBlock`.

    Args:
        x1, x2: the inputs.
        f, g, num_layers, f_side_input, g_side_input: as of `RevBlock`.
        is_training: whether gradients compute inputs of outputs.
    """
    block = RevBlock(
        f, g, num_layers, f_side_input, g_side_input, is_training,
        _reuse=get_variable_scope().reuse,
    )  # fmt: skip
    return block.forward(x1, x2)
