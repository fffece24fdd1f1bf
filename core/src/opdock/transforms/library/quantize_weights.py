"""`quantize_weights`: large constants take one byte a number."""

from __future__ import annotations

from typing import Any

import numpy as np

from opdock import dtypes
from opdock.transforms.editor import Editor, constant_value
from opdock.transforms.quantization import constant_range, to_bytes
from opdock.transforms.registry import Context


def quantize_weights(graph_def: Any, context: Context, *, minimum_size: int = 1024) -> Any:
    """Stores float32 constants in 8 bits, with the ops that make floats of them.

    Args:
        graph_def: a `GraphDef`.
        context: its inputs and outputs.
        minimum_size: constants of fewer numbers stay as they are.

    Raises:
        InvalidArgumentError: a constant has no value, or it cannot be decoded.
    """
    editor = Editor(graph_def, context.ends)
    for node in editor:
        if node.op != "Const":
            continue
        value = constant_value(node)
        if value.dtype != np.float32 or value.size < minimum_size or not value.size:
            continue
        name, control = node.name, [text for text in node.input if text.startswith("^")]
        low, high = constant_range(value)
        inputs = [
            editor.constant(
                editor.unique(f"{name}_quantized_const"), to_bytes(value, low, high), dtypes.quint8
            ),
            editor.constant(editor.unique(f"{name}_quantized_min"), low),
            editor.constant(editor.unique(f"{name}_quantized_max"), high),
            *control,
        ]
        made = editor.make("Dequantize", name, inputs, T=dtypes.quint8, mode="MIN_FIRST")
        made.device = node.device
    return editor.result()
