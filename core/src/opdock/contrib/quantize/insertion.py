"""Puts rounding where 8-bit inference will round."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any, Final

from opdock.api import logging
from opdock.contrib.quantize import ranges
from opdock.contrib.quantize.layers import ACTIVATIONS, RELUS, Layer, layers
from opdock.contrib.quantize.wiring import (
    Consumers,
    chosen,
    context_of,
    quantization_step,
    reroute,
)
from opdock.graph.nodes.collections import GraphKeys
from opdock.graph.nodes.graph import Graph
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.ops.compare import greater_equal

__all__ = ["quantize"]

_FAKES: Final = frozenset({
    "FakeQuantWithMinMaxVars", "FakeQuantWithMinMaxArgs", "FakeQuantWithMinMaxVarsPerChannel",
})  # fmt: skip
_ARITHMETIC: Final = frozenset({"Add", "AddV2", "Mul"})
_HANDS_ON: Final = frozenset({
    "Reshape", "Identity", "BatchToSpaceND", "SpaceToBatchND", "MaxPool", "Max",
})  # fmt: skip
_DELAYED: Final = "/delayed_quant"


def quantize(
    graph: Graph, is_training: bool, weight_bits: int = 8, activation_bits: int = 8,
    symmetric: bool = False, ema_decay: float = 0.999, quant_delay: int | None = None,
    vars_collection: str = GraphKeys.GLOBAL_VARIABLES, scope: str | None = None,
) -> None:  # fmt: skip
    """Rounds weights and activations of a graph, in place.

    Args:
        graph: what to change.
        is_training: whether ranges follow what goes through.
        weight_bits: bits of weights.
        activation_bits: bits of activations.
        symmetric: whether the ends of ranges lie equally far from 0.
        ema_decay: how much of the range of activations each step keeps.
        quant_delay: steps before rounding begins.
        vars_collection: where the variables of ranges go.
        scope: the scope to change; all without it.

    Raises:
        ValueError: nobody takes what was to be rounded.
    """
    if scope and not scope.endswith("/"):
        scope += "/"
    insertion = _Insertion(
        graph, is_training, activation_bits, symmetric, ema_decay, quant_delay, vars_collection,
        scope or "",
    )  # fmt: skip
    for layer in layers(graph):
        insertion.weights(layer, weight_bits)
        insertion.activation(layer)
        if layer.bypass is not None:
            insertion.bypass(layer, layer.bypass)
        if layer.post_bypass is not None:
            insertion.post_bypass(layer.post_bypass)
    insertion.arithmetic()


@dataclass
class _Insertion:
    graph: Graph
    is_training: bool
    bits: int
    symmetric: bool
    decay: float
    delay: int | None
    collection: str
    scope: str
    done: set[Operation] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.consumers = Consumers(self.graph)

    # ------------------------------------------------------------ a layer
    def weights(self, layer: Layer, bits: int) -> None:
        source = layer.weights.op
        self._insert(
            context_of(layer.op.name), "weights_quant", source, bits=bits, moving=False,
            narrow=True, consumer_scope=self.scope,
        )  # fmt: skip

    def activation(self, layer: Layer) -> None:
        if layer.activation is None:
            return
        context = self._around(layer)
        self._insert(context, "act_quant", layer.activation, low=0.0, producer_scope=self.scope)
        self.done.add(layer.activation)

    def bypass(self, layer: Layer, bypass: Operation) -> None:
        """Rounds what goes into the sum of a bypass, and the sum where no activation does."""
        both: dict[str, Any] = {"producer_scope": self.scope, "consumer_scope": self.scope}
        if layer.bias is not None:
            self._insert(context_of(layer.op.name), "conv_quant", layer.bias, **both)
            self.done.add(layer.bias)
        if not self._leads_to(bypass, ACTIVATIONS):
            self._insert(self._around(layer), "add_quant", bypass, **both)
            self.done.add(bypass)

    def post_bypass(self, bypass: Operation) -> None:
        if not self._leads_to(bypass, RELUS):
            self._insert(
                context_of(bypass.name), "post_activation_bypass_quant", bypass,
                producer_scope=self.scope,
            )  # fmt: skip
            self.done.add(bypass)

    def _around(self, layer: Layer) -> str:
        context = context_of(layer.op.name)
        return context if layer.bypass is None else context_of(context)

    def _leads_to(self, op: Operation, types: Collection[str]) -> bool:
        """Whether an activation follows, into which inference will fuse the sum."""
        found = any(user.type in types for user in self.consumers(op))
        if found:
            logging.info("Skipping %s, because its followed by an activation.", op.name)
        return found

    # ------------------------------------------------------------ sums and products
    def arithmetic(self) -> None:
        """Rounds sums and products of what was rounded."""
        self.consumers, self.symmetric = Consumers(self.graph), False
        for op in self.graph.get_operations():
            if self._takes_rounded(op):
                name = f"activation_{op.type}_quant"
                logging.info("Inserting fake quant op %s after %s", name, op.name)
                self._insert(op.name, name, op, producer_scope=self.scope)

    def _takes_rounded(self, op: Operation) -> bool:
        if op in self.done or op.type not in _ARITHMETIC:
            return False
        users = op.outputs[0].consumers()
        if len(users) == 1 and users[0].type in RELUS:
            logging.info("Skipping quant after %s", op.name)
            return False
        for tensor in op.inputs:
            source = tensor.op
            while source.type in _HANDS_ON:
                source = source.inputs[0].op
            if source.type in _FAKES or _DELAYED in source.name:
                return True
            if source.type in _ARITHMETIC and any(
                self._takes_rounded(before.op) for before in source.inputs
            ):
                return True
        return False

    # ------------------------------------------------------------ one place
    def _insert(
        self, context: str, name: str, producer: Operation, *, bits: int | None = None,
        moving: bool = True, narrow: bool = False, low: float = -6.0, producer_scope: str = "",
        consumer_scope: str = "",
    ) -> None:  # fmt: skip
        """Rounds what an op gives, for all that take it."""
        users = self.consumers(producer)
        outside = [u.name for u in users if not u.name.startswith(consumer_scope)]
        if not producer.name.startswith(producer_scope) or outside:
            logging.info("%s of %s is not rounded: it leaves the scope", name, producer.name)
            return
        value = producer.outputs[0]
        if _is_rounded(value):
            return
        prefix = f"{context}/{name}" if context else name
        around = self.graph.get_name_scope()
        if around:
            prefix = prefix.removeprefix(f"{around}/")
        rounded = self._rounded(value, prefix, bits or self.bits, moving, narrow, low)
        if users and reroute(rounded, value, users) < len(users):
            names = ", ".join(user.name for user in users)
            raise ValueError(f"No inputs quantized for ops: [{names}]")

    def _rounded(
        self, value: Tensor, prefix: str, bits: int, moving: bool, narrow: bool, low: float
    ) -> Tensor:
        shared: dict[str, Any] = {
            "init_min": low, "is_training": self.is_training, "num_bits": bits,
            "symmetric": self.symmetric, "narrow_range": narrow,
            "vars_collection": self.collection, "name_prefix": prefix,
        }  # fmt: skip
        if moving:
            rounded = ranges.moving_average_quantize(value, ema_decay=self.decay, **shared)
        else:
            rounded = ranges.last_value_quantize(value, **shared)
        if not self.delay or self.delay < 0:
            return rounded
        begun = greater_equal(quantization_step(), self.delay, name=f"{prefix}/activate_quant")
        return chosen(begun, rounded, value, f"{prefix}{_DELAYED}")


def _is_rounded(value: Tensor) -> bool:
    """Whether someone rounds a tensor already: bypasses may belong to two layers."""
    users = list(value.consumers())
    while users:
        user = users.pop()
        if user.type in _FAKES:
            return True
        if user.type in ("Reshape", "Identity"):
            users += [u for tensor in user.outputs for u in tensor.consumers()]
    return False
