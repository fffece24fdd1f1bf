"""`quantize_nodes`: computes in 8 bits wherever an op can."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from opdock import dtypes, errors
from opdock.transforms.definitions import attribute
from opdock.transforms.editor import Editor, copied, node_name
from opdock.transforms.eight_bit import EightBit, equivalent
from opdock.transforms.order import in_order
from opdock.transforms.registry import Context

_HANDS_ON: Final = ("Identity", "MaxPool", "Relu", "Relu6")
"""Ops of one input whose results lie in the range of what they take."""


class Bytes(NamedTuple):
    """A tensor of quint8 and the numbers that its least and its largest stand for."""

    values: str
    low: str
    high: str


def quantize_nodes(
    graph_def: Any, context: Context, *, input_min: float | None = None,
    input_max: float | None = None, fallback_min: float | None = None,
    fallback_max: float | None = None, ignore_op: tuple[str, ...] = (),
) -> Any:  # fmt: skip
    """Puts 8-bit ops in the place of float ones that have an equivalent.

    Run quantize_weights before, so that constants are bytes. Between two such ops values stay
    bytes; what else takes them gets floats. Sums of 32 bits are brought to 8 by the range that a
    FakeQuantWithMinMaxVars behind them gives, or the fallback, or else the one that they have at
    that moment (see freeze_requantization_ranges).

    Args:
        graph_def: a `GraphDef`.
        context: its inputs and outputs.
        input_min: with `input_max`, makes all float32 placeholders quint8: what 0 stands for.
        input_max: what 255 stands for.
        fallback_min: with `fallback_max`, the range of all sums that have none.
        fallback_max: its upper end.
        ignore_op: op types to leave as they are.

    Raises:
        InvalidArgumentError: one end of a range is given without the other, or it is empty.
    """
    inputs = _range("input", input_min, input_max)
    fallback = _range("fallback", fallback_min, fallback_max)
    editor = Editor(graph_def, context.ends)
    quantizer = _Quantizer(editor, fallback)
    if inputs is not None:
        quantizer.placeholders(inputs)
    quantizer.hoist_ranges()
    for name in in_order(editor, strict=False):
        node = editor.nodes.get(name)
        if node is None or node.op in ignore_op:
            continue
        found = equivalent(node)
        if found is not None:
            quantizer.replace(node, found)
        elif node.op == "FakeQuantWithMinMaxVars":
            quantizer.round(node)
    editor.sweep([node.name for node in editor if node.op == "Dequantize"])
    return editor.result()


def _range(which: str, low: float | None, high: float | None) -> tuple[float, float] | None:
    if low is None and high is None:
        return None
    if low is None or high is None:
        raise errors.InvalidArgumentError(
            None, None, f"You must pass both {which}_min and {which}_max into quantize_nodes"
        )
    if not low < high:
        raise errors.InvalidArgumentError(
            None, None,
            f"quantize_nodes: {which}_min {low:g} must be less than {which}_max {high:g}",
        )  # fmt: skip
    return low, high


class _Quantizer:
    def __init__(self, editor: Editor, fallback: tuple[float, float] | None) -> None:
        self._editor = editor
        self._fallback = fallback
        self._bytes: dict[str, Bytes] = {}

    # ------------------------------------------------------------ before and after
    def placeholders(self, ends: tuple[float, float]) -> None:
        """Makes the placeholders of floats placeholders of bytes in a range."""
        editor = self._editor
        for node in editor:
            if node.op != "Placeholder" or attribute(node, "dtype") is not dtypes.float32:
                continue
            name = node.name
            as_float = editor.unique(f"{name}_eightbit/dequantize")
            editor.redirect(name, as_float)
            node.attr["dtype"].type = dtypes.quint8.as_datatype_enum
            found = Bytes(name, *self._constants(f"{name}_eightbit", ends, "", f"^{name}"))
            self._floats(as_float, found)

    def hoist_ranges(self) -> None:
        """Brings trained ranges before ops that hand values on, next to the op that adds up."""
        editor = self._editor
        for node in editor:
            if node.op != "FakeQuantWithMinMaxVars" or not self._has_constant_range(node):
                continue
            first = node
            while True:
                source = editor.source(first.input[0])
                if source.op not in _HANDS_ON or editor.is_shared(source.name):
                    break
                first = source
            if first is node:
                continue
            last = editor.source(node.input[0])
            hoisted = copied(node, editor.unique(f"{node.name}_hoisted"))
            hoisted.input[0] = first.input[0]
            editor.put(hoisted)
            editor.set_inputs(first, [hoisted.name, *first.input[1:]])
            # The last op of the chain takes the name, which others know.
            editor.remove(last.name)
            editor.put(copied(last, node.name))

    def round(self, fake: Any) -> None:
        """Makes bytes, and floats again, of what a FakeQuantWithMinMaxVars rounds."""
        if attribute(fake, "num_bits") != 8 or not self._has_constant_range(fake):
            return
        source = self._editor.source(fake.input[0])
        if source.op == "Dequantize" and self._ends_of(source) == list(fake.input[1:3]):
            self._floats(fake.name, Bytes(*source.input[:3]), fake)
            return
        prefix = f"{fake.name}_eightbit"
        made = self._editor.make(
            "QuantizeV2", self._editor.unique(f"{prefix}/quantize"), fake.input[:3],
            T=dtypes.quint8, mode="MIN_FIRST",
        )  # fmt: skip
        self._floats(fake.name, _outputs(made.name), fake)

    # ------------------------------------------------------------ ops
    def replace(self, node: Any, to: EightBit) -> None:
        """Computes a node in 8 bits; under its own name are floats."""
        editor = self._editor
        data = [text for text in node.input if not text.startswith("^")]
        plain = {i % len(data) for i in to.plain}
        factors = [self._of(text, node) for i, text in enumerate(data) if i not in plain]
        ends = [
            *([f.low for f in factors] if to.lists else ()),
            *([f.high for f in factors] if to.lists else ()),
            *(() if to.lists else (end for f in factors for end in (f.low, f.high))),
        ]
        others = [data[i] for i in sorted(plain)]
        values = [f.values for f in factors]
        # Concat takes its axis first, a reshape its shape behind the values.
        inputs = [*others, *values] if to.lists else [*values, *others]
        name = editor.unique(f"{node.name}/eightbit")
        made = editor.make(
            to.op, name, [*inputs, *ends, *(t for t in node.input if t.startswith("^"))], **to.types
        )
        made.device = node.device
        for key in to.copied:
            if key in node.attr:
                made.attr[key].CopyFrom(node.attr[key])
        found = _outputs(name)
        if to.is_wide:
            found = self._narrowed(node, found)
        self._floats(node.name, found, node)

    def _of(self, text: str, user: Any) -> Bytes:
        """A tensor of floats as bytes: those that it was made of, or new ones."""
        source = self._editor.source(text)
        if source.op == "Dequantize" and _is_min_first(source):
            return Bytes(*source.input[:3])
        if text not in self._bytes:
            self._bytes[text] = self._measured(text, user)
        return self._bytes[text]

    def _measured(self, text: str, user: Any) -> Bytes:
        """Bytes in the range that a tensor has at that moment."""
        editor, wait = self._editor, f"^{node_name(text)}"
        name = f"{user.name}_eightbit/{text.replace(':', '__port__')}"

        def numbers(which: str, value: list[int]) -> str:
            made = editor.constant(editor.unique(f"{name}/{which}"), np.array(value, np.int32))
            # In a loop a constant belongs to the turn that it waits for.
            editor.set_inputs(editor.nodes[made], [wait])
            return made

        flat = editor.make(
            "Reshape", editor.unique(f"{name}/reshape"), [text, numbers("reshape_dims", [-1])],
            T=dtypes.float32,
        )  # fmt: skip
        axis = numbers("reduction_dims", [0])
        ends = [
            editor.make(
                op, editor.unique(f"{name}/{op.lower()}"), [flat.name, axis], T=dtypes.float32,
                keep_dims=False,
            ).name
            for op in ("Min", "Max")
        ]  # fmt: skip
        made = editor.make(
            "QuantizeV2", editor.unique(f"{name}/quantize"), [text, *ends], T=dtypes.quint8,
            mode="MIN_FIRST",
        )  # fmt: skip
        return _outputs(made.name)

    def _narrowed(self, node: Any, sums: Bytes) -> Bytes:
        """Sums of 32 bits as bytes."""
        editor, name = self._editor, node_name(sums.values)
        trained = self._trained_range(node)
        if trained is not None:
            low, high = trained
        elif self._fallback is not None:
            low, high = self._constants(name, self._fallback, "fallback_")
        else:
            measured = editor.make(
                "RequantizationRange", editor.unique(f"{name}/requant_range"), sums,
                Tinput=dtypes.qint32,
            )  # fmt: skip
            low, high = measured.name, f"{measured.name}:1"
        made = editor.make(
            "Requantize", editor.unique(f"{name}/requantize"), [*sums, low, high],
            Tinput=dtypes.qint32, out_type=dtypes.quint8,
        )  # fmt: skip
        return _outputs(made.name)

    def _trained_range(self, node: Any) -> tuple[str, str] | None:
        """The range of the FakeQuantWithMinMaxVars that alone takes a node's result."""
        users = self._editor.users(node.name)
        if len(users) != 1 or self._editor.is_shared(node.name):
            return None
        fake = users[0]
        if fake.op != "FakeQuantWithMinMaxVars" or not self._has_constant_range(fake):
            return None
        return fake.input[1], fake.input[2]

    def _has_constant_range(self, fake: Any) -> bool:
        return all(self._editor.source(text).op == "Const" for text in fake.input[1:3])

    def _ends_of(self, floats: Any) -> list[str]:
        """The range to which the bytes behind a Dequantize were brought."""
        source = self._editor.source(floats.input[0])
        return list(source.input[3:5]) if source.op == "Requantize" else []

    def _constants(
        self, prefix: str, ends: tuple[float, float], which: str, *wait: str
    ) -> tuple[str, str]:
        low, high = (
            self._editor.constant(self._editor.unique(f"{prefix}/{which}{end}"), np.float32(value))
            for end, value in zip(("min", "max"), ends, strict=True)
        )
        for name in (low, high):
            self._editor.set_inputs(self._editor.nodes[name], wait)
        return low, high

    def _floats(self, name: str, of: Bytes, old: Any = None) -> None:
        """Puts floats made of bytes under a name."""
        made = self._editor.make("Dequantize", name, of, T=dtypes.quint8, mode="MIN_FIRST")
        if old is not None:
            made.device = old.device
            self._editor.sweep(node_name(text) for text in old.input)


def _outputs(name: str) -> Bytes:
    return Bytes(name, f"{name}:1", f"{name}:2")


def _is_min_first(node: Any) -> bool:
    return attribute(node, "mode") == "MIN_FIRST" and attribute(node, "T") is dtypes.quint8
