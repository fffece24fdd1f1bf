"""`fold_batch_norms`: products with a constant after a convolution go into its weights."""

from __future__ import annotations

from typing import Any

from opdock.transforms.batch_norms import CONVOLUTIONS, channels, scaled_weights
from opdock.transforms.definitions import attribute
from opdock.transforms.editor import Editor, constant_value, copied
from opdock.transforms.patterns import ANY, Match, Pattern, replace
from opdock.transforms.registry import Context

_SCALED = Pattern(
    "Mul",
    Pattern(f"{CONVOLUTIONS}|MatMul", ANY, Pattern("Const", name="weights"), name="conv"),
    Pattern("Const", name="scale"),
)


def fold_batch_norms(graph_def: Any, context: Context) -> Any:
    """Multiplies weights by the constant with which the result is multiplied, channel by channel.

    That is what is left of a batch normalization for inference once fold_constants has run. A
    convolution whose own result somebody else takes stays as it is, and so does one that is
    multiplied by something else than a number for each channel.
    """
    editor = Editor(graph_def, context.ends)

    def fold(match: Match) -> bool:
        mul, conv = match[""], match["conv"]
        if editor.is_shared(conv.name) or attribute(conv, "data_format") == "NCHW":
            return False
        weights, scale = constant_value(match["weights"]), constant_value(match["scale"])
        if scale.shape != (channels(conv, weights),):
            return False  # a factor of another kind: it is no batch normalization's
        name = scaled_weights(editor, conv, match["weights"], scale)
        made = copied(conv, mul.name)
        made.input[1] = name
        editor.put(made)
        return True

    replace(editor, _SCALED, fold)
    return editor.result()
