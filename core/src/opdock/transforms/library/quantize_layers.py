"""`quantize_layers`: whole layers of a convolutional network in 8 bits, weights by channel."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from opdock import dtypes
from opdock.dtypes import DType
from opdock.transforms.definitions import attribute
from opdock.transforms.editor import Editor, constant_value, node_name
from opdock.transforms.eight_bit import EIGHT_BIT, equivalent
from opdock.transforms.logged_ranges import logged_ranges
from opdock.transforms.order import in_order
from opdock.transforms.registry import Context

_SUMS: Final = ("Add", "AddV2")
_HAND_ON: Final = ("AvgPool", "MaxPool", "Reshape")
"""Ops that need no range but that of what they take."""
_LOGGED: Final = "/eightbit/requant_range"
_HIGHEST: Final = 127


def quantize_layers(
    graph_def: Any, context: Context, *, min_max_log_file: str, min_percentile: float = 5.0,
    max_percentile: float = 5.0,
) -> Any:  # fmt: skip
    """Puts one 8-bit op in the place of a convolution, its bias, a sum and its Relu.

    Weights have a range for each output channel, and biases stay floats. Run it over the folded
    graph, with the log that freeze_requantization_ranges takes. A layer whose images may be
    negative stays as it is, the first one as a rule, as does one that ends in no Relu and no sum.

    Args:
        graph_def: a `GraphDef` of floats.
        context: its inputs and outputs.
        min_max_log_file: what the graph that quantize_nodes makes of this one printed, once
            insert_logging(op=RequantizationRange, show_name=true, message="__requant_min_max:") had
            been run over it, for many inputs.
        min_percentile: how many percent of the logged lower ends lie below a range.
        max_percentile: how many percent of the upper ends lie above it.

    Raises:
        NotFoundError: there is no such file.
        InvalidArgumentError: no ranges are in the file, or a percentage is not between 0 and 100.
    """
    ranges = logged_ranges("quantize_layers", min_max_log_file, min_percentile, max_percentile)
    known = {name.removesuffix(_LOGGED): ends for name, ends in ranges}
    layers = _Layers(Editor(graph_def, context.ends), known)
    for name in in_order(layers.editor, strict=False):
        node = layers.editor.nodes.get(name)
        if node is None:
            continue
        if node.op == "Conv2D":
            layers.replace(node)
        elif node.op in _HAND_ON:
            layers.hand_on(node)
    layers.editor.sweep([node.name for node in layers.editor if node.op == "Dequantize"])
    return layers.editor.result()


class _Bytes(NamedTuple):
    """A tensor of 8-bit integers, of which 0 stands for 0."""

    values: str
    low: str
    high: str
    dtype: DType


class _Layer(NamedTuple):
    """A convolution and what belongs to it.

    Attributes:
        nodes: all of them, the convolution first.
        weights, bias: constants.
        summand: what is added, if anything is.
        reach: the largest number of the result, without its sign.
        relu: whether it ends in a Relu.
    """

    nodes: list[Any]
    weights: np.ndarray[Any, Any]
    bias: np.ndarray[Any, Any]
    summand: _Bytes | None
    reach: float
    relu: bool


class _Layers:
    def __init__(self, editor: Editor, ranges: dict[str, tuple[float, float]]) -> None:
        self.editor = editor
        self._ranges = ranges
        self._bytes: dict[str, _Bytes] = {}

    # ------------------------------------------------------------ what there is
    def _constant(self, text: str) -> np.ndarray[Any, Any] | None:
        node = self.editor.source(text)
        if node.op != "Const":
            return None
        value = constant_value(node)
        return value if value.dtype == np.float32 else None

    def _only_user(self, node: Any) -> Any:
        """The node that alone takes a node's result; None if there is another, or none."""
        users = self.editor.users(node.name)
        return users[0] if len(users) == 1 and not self.editor.is_shared(node.name) else None

    def _layer(self, conv: Any) -> _Layer | None:
        """The layer that begins with a convolution; None if it stays as it is."""
        weights = self._constant(conv.input[1])
        if weights is None or equivalent(conv) is None or not weights.size:
            return None
        nodes, bias = [conv], np.zeros(weights.shape[-1], np.float32)
        user = self._only_user(conv)
        if user is not None and user.op in (*_SUMS, "BiasAdd"):
            value = self._constant(user.input[1])
            if value is not None and value.shape == bias.shape and _is_first(conv, user):
                nodes, bias = [*nodes, user], value
                user = self._only_user(user)
        if user is None:
            return None
        last = nodes[-1]
        if user.op == "Relu":
            return self._ending([*nodes, user], weights, bias, None, last)
        if user.op not in _SUMS:
            return None
        relu = self._only_user(user)
        if relu is None or relu.op != "Relu":
            return None
        other = next((t for t in user.input if node_name(t) != last.name), None)
        summand = None if other is None else self._bytes.get(other)
        if summand is not None:
            return self._ending([*nodes, user, relu], weights, bias, summand, user)
        # The other one of the two comes later, and adds this one up.
        ends = self._ranges.get(last.name)
        if ends is None:
            return None
        reach = max(-ends[0], ends[1])
        return _Layer(nodes, weights, bias, None, reach, False) if reach > 0 else None

    def _ending(
        self, nodes: list[Any], weights: np.ndarray[Any, Any], bias: np.ndarray[Any, Any],
        summand: _Bytes | None, ranged: Any,
    ) -> _Layer | None:  # fmt: skip
        """A layer that ends in a Relu, if the range before that is known."""
        ends = self._ranges.get(ranged.name)
        if ends is None or ends[1] <= 0:
            return None
        return _Layer(nodes, weights, bias, summand, ends[1], True)

    def _images(self, text: str) -> _Bytes | None:
        """Images as bytes from 0 on: those that there are, or made of the floats of a Relu."""
        if text in self._bytes:
            found = self._bytes[text]
            return found if found.dtype is dtypes.quint8 else None
        relu = self.editor.source(text)
        ends = self._ranges.get(node_name(relu.input[0])) if relu.op == "Relu" else None
        if ends is None or ends[1] <= 0:
            return None
        name = f"{relu.name}_eightbit"
        made = self.editor.make(
            "QuantizeV2", self.editor.unique(f"{name}/quantize"),
            [text, *self._range(name, 0, ends[1])], T=dtypes.quint8, mode="MIN_FIRST",
        )  # fmt: skip
        self._bytes[text] = _of(made.name, dtypes.quint8)
        return self._bytes[text]

    # ------------------------------------------------------------ what is made
    def replace(self, conv: Any) -> None:
        """Puts one op in the place of a layer."""
        layer = self._layer(conv)
        images = None if layer is None else self._images(conv.input[0])
        if layer is None or images is None:
            return
        name, last = f"{conv.name}_eightbit", layer.nodes[-1]
        reach = np.abs(layer.weights).reshape(-1, layer.weights.shape[-1]).max(axis=0)
        reach = np.where(reach > 0, reach, np.float32(1))
        integers = np.rint(layer.weights / reach * _HIGHEST).astype(np.int8)
        dtype = dtypes.quint8 if layer.relu else dtypes.qint8
        inputs = [
            images.values,
            self._put(f"{name}/filter", integers.view(dtypes.qint8.np)),
            self._put(f"{name}/bias", layer.bias), images.low, images.high,
            self._put(f"{name}/filter_min", -reach), self._put(f"{name}/filter_max", reach),
            *self._range(name, 0 if layer.relu else -layer.reach, layer.reach),
        ]  # fmt: skip
        more: dict[str, Any] = {}
        summed = ""
        if layer.summand is not None:
            inputs += layer.summand[:3]
            more["Tsummand"] = layer.summand.dtype
            summed = "Sum" if layer.summand.dtype is dtypes.quint8 else "SignedSum"
        waits = dict.fromkeys(t for n in layer.nodes for t in n.input if t.startswith("^"))
        made = self.editor.make(
            f"QuantizedConv2DWithBias{summed}{'AndRelu' * layer.relu}AndRequantize",
            self.editor.unique(f"{last.name}/eightbit"), [*inputs, *waits], Tinput=dtypes.quint8,
            Tfilter=dtypes.qint8, Tbias=dtypes.float32, out_type=dtype,
            strides=attribute(conv, "strides"), padding=attribute(conv, "padding"), **more,
        )  # fmt: skip
        made.device = conv.device
        self._floats(last, _of(made.name, dtype))

    def hand_on(self, node: Any) -> None:
        """Has what only moves or picks numbers take bytes, where there are some."""
        source, to = self._bytes.get(node.input[0]), EIGHT_BIT[node.op]
        if source is None or source.dtype is not dtypes.quint8 or equivalent(node) is None:
            return
        data = [text for text in node.input if not text.startswith("^")]
        waits = [text for text in node.input if text.startswith("^")]
        made = self.editor.make(
            to.op, self.editor.unique(f"{node.name}/eightbit"),
            [source.values, *data[1:], source.low, source.high, *waits], **to.types,
        )  # fmt: skip
        made.device = node.device
        for key in to.copied:
            if key in node.attr:
                made.attr[key].CopyFrom(node.attr[key])
        self._floats(node, _of(made.name, dtypes.quint8))

    def _floats(self, old: Any, of: _Bytes) -> None:
        """Puts floats made of bytes under a node's name."""
        mode = "MIN_FIRST" if of.dtype is dtypes.quint8 else "SCALED"
        made = self.editor.make("Dequantize", old.name, of[:3], T=of.dtype, mode=mode)
        made.device = old.device
        self._bytes[old.name] = of
        self.editor.sweep(node_name(text) for text in old.input)

    def _put(self, name: str, value: Any) -> str:
        return self.editor.constant(self.editor.unique(name), value)

    def _range(self, name: str, low: float, high: float) -> tuple[str, str]:
        return (
            self._put(f"{name}/min", np.float32(low)), self._put(f"{name}/max", np.float32(high)),
        )  # fmt: skip


def _of(name: str, dtype: DType) -> _Bytes:
    return _Bytes(name, f"{name}:1", f"{name}:2", dtype)


def _is_first(conv: Any, bias: Any) -> bool:
    """Whether a sum takes a convolution's result first: as constants come, second."""
    return bool(bias.input[0] == conv.name)
