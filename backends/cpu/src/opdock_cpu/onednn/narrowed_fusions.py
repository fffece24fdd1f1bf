"""Which nodes of an 8-bit graph are computed at once: sums, what narrows them, what follows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from opdock.plugin import FusionPattern, NodeSig, P, dtypes
from opdock_cpu.onednn.fusions import op_name
from opdock_cpu.onednn.library import reason

__all__ = ["CHAINS", "SOURCES", "Chain", "patterns"]

SOURCES: Final[Mapping[str, tuple[str, ...]]] = {
    "QuantizedConv2D": ("x", "w", "low_x", "high_x", "low_w", "high_w"),
    "QuantizedMatMul": ("x", "w", "low_x", "high_x", "low_w", "high_w"),
    "QuantizedBiasAdd": ("x", "bias", "low_x", "high_x", "low_bias", "high_bias"),
    "QuantizedAdd": ("x", "y", "low_x", "high_x", "low_y", "high_y"),
}
"""The ops whose sums have 32 bits, and the names of what they take."""

_PRODUCTS: Final = ("QuantizedConv2D", "QuantizedMatMul")
_ACTIVATIONS: Final = ("", "QuantizedRelu", "QuantizedRelu6")


@dataclass(frozen=True, slots=True)
class Chain:
    """A chain of nodes that becomes one.

    Attributes:
        source: the op whose sums are narrowed.
        measured: whether to the range that they have, else to one that is given.
        biased: whether a QuantizedBiasAdd follows, and its Requantize.
        activation: the op that follows; "" is none.
    """

    source: str
    measured: bool
    biased: bool
    activation: str

    @property
    def op(self) -> str:
        """The private op type."""
        return op_name(self.source, "Measured" if self.measured else "Narrowed", *self._rest)

    @property
    def name(self) -> str:
        """The fusion's name."""
        how = "measured" if self.measured else "narrowed"
        return "_".join(["onednn", *(p.lower() for p in (self.source, how, *self._rest) if p)])

    @property
    def _rest(self) -> tuple[str, str]:
        return "Biased" * self.biased, self.activation.removeprefix("Quantized")


def _chains() -> Iterator[Chain]:
    for activation in _ACTIVATIONS:
        for source in SOURCES:
            yield Chain(source, False, False, activation)
            yield Chain(source, True, False, activation)
        for source in _PRODUCTS:
            yield Chain(source, False, True, activation)


CHAINS: Final = tuple(_chains())
"""All chains."""


# ---------------------------------------------------------------- patterns
Outputs = tuple[P, P, P]
"""Values, and the ends of their range."""


def _node(op: str, *inputs: P | str, name: str = "") -> Outputs:
    """The three outputs of one node, of which only the first has the name."""
    first = P(op, *inputs, name=name)
    return first, P(op, *inputs, output=1), P(op, *inputs, output=2)


def _narrowed(sums: Outputs, measured: bool, which: str) -> Outputs:
    if not measured:
        return _node("Requantize", *sums, f"low{which}", f"high{which}", name=f"narrow{which}")
    ends = P("RequantizationRange", *sums), P("RequantizationRange", *sums, output=1)
    return _node("Requantize", *sums, *ends, name=f"narrow{which}")


def _pattern(chain: Chain) -> FusionPattern:
    outputs = _node(chain.source, *SOURCES[chain.source], name="source")
    outputs = _narrowed(outputs, chain.measured, "")
    if chain.biased:
        values, low, high = outputs
        outputs = _node(
            "QuantizedBiasAdd", values, "bias", low, high, "low_bias", "high_bias", name="bias"
        )
        outputs = _narrowed(outputs, False, "_last")
    if chain.activation:
        outputs = _node(chain.activation, *outputs)
    return FusionPattern(
        name=chain.name, pattern=outputs[0], op=chain.op, when=_when(chain),
        benefit=10 + 4 * chain.biased + 2 * bool(chain.activation) + chain.measured,
        outputs=(("", 0), ("", 1), ("", 2)),
    )  # fmt: skip


def _when(chain: Chain) -> Callable[[Mapping[str, NodeSig]], bool | str]:
    # What takes part is known by name; loading the kernels waits until one is wanted.
    byte = dtypes.quint8

    def when(nodes: Mapping[str, NodeSig]) -> bool | str:
        from opdock_cpu.onednn.kernels.quantized import worth

        source = nodes["source"]
        if source.in_dtypes[0] != byte or nodes[""].out_dtypes[0] != byte:
            return "it computes quint8 only"
        if chain.source in _PRODUCTS:
            return worth(source, chain=True)
        if source.in_dtypes[1] != byte:
            return "it computes quint8 only"
        if chain.source == "QuantizedAdd" and not _alike(source):
            return "the sum broadcasts"
        return True

    return when


def _alike(sig: NodeSig) -> bool:
    x, y = sig.in_shapes[:2]
    return x is not None and x == y and None not in x


patterns: Final[tuple[FusionPattern, ...]] = () if reason() else tuple(map(_pattern, CHAINS))
"""All patterns, none without oneDNN; the kernels stand in `kernels.narrowed`."""
