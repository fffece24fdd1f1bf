"""`backport_tensor_array_v3`: arrays of tensors as versions before 1.0 knew them."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from opdock.transforms.editor import Editor
from opdock.transforms.registry import Context

_MAKERS: Final = ("TensorArrayV3", "TensorArrayGradV3")
_USERS: Final = tuple(
    f"TensorArray{name}V3"
    for name in ("Write", "Read", "Gather", "Scatter", "Concat", "Split", "Size", "Close")
)


def backport_tensor_array_v3(graph_def: Any, context: Context) -> Any:
    """Makes TensorArrayV2 and its ops of those of version 3.

    Version 2 has no flow among the results of what makes an array: a constant stands for it.
    """
    editor = Editor(graph_def, context.ends)
    for node in editor:
        if node.op in _MAKERS:
            flow = editor.constant(
                editor.unique(f"{node.name}/replacement_flow_node"), np.float32(1)
            )
            editor.redirect(f"{node.name}:1", flow)
        if node.op in (*_MAKERS, *_USERS):
            node.op = f"{node.op[:-1]}2"
    return editor.result()
