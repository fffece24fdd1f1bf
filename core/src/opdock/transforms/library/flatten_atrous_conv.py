"""`flatten_atrous_conv`: convolutions between SpaceToBatchND and BatchToSpaceND as plain ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from opdock import errors
from opdock.transforms.definitions import attribute
from opdock.transforms.editor import Editor, constant_value, copied
from opdock.transforms.patterns import ANY, Match, Pattern, replace
from opdock.transforms.registry import Context

_ATROUS = Pattern(
    "BatchToSpaceND",
    Pattern(
        "Conv2D|DepthwiseConv2dNative",
        Pattern("SpaceToBatchND", ANY, Pattern("Const", name="block"), ANY, name="spread"),
        Pattern("Const", name="filter"),
        name="conv",
    ),
    Pattern("Const"),
    ANY,
)


def flatten_atrous_conv(graph_def: Any, context: Context) -> Any:
    """Makes one convolution, whose filter has zeros between its taps, of an atrous one.

    Run fold_constants before: block and filter must be constants. The result is the same where the
    margins were those of padding "SAME", which the new convolution has.

    Raises:
        InvalidArgumentError: the block has other than two sides, or the filter other than four.
    """
    editor = Editor(graph_def, context.ends)

    def flatten(match: Match) -> bool:
        conv, spread = match["conv"], match["spread"]
        if attribute(conv, "data_format") != "NHWC":
            return False
        block, taps = constant_value(match["block"]), constant_value(match["filter"])
        if block.shape != (2,) or taps.ndim != 4:
            raise errors.InvalidArgumentError(
                None, None,
                f"flatten_atrous_conv: '{match[''].name}' has a block of shape {list(block.shape)} "
                f"and a filter of shape {list(taps.shape)}, expected [2] and four dimensions",
            )  # fmt: skip
        name = editor.constant(editor.unique(f"{match[''].name}/filter"), _spread(taps, block))
        made = editor.put(copied(conv, match[""].name))
        made.attr["padding"].s = b"SAME"
        editor.set_inputs(made, [spread.input[0], name])
        return True

    replace(editor, _ATROUS, flatten)
    return editor.result()


def _spread(taps: np.ndarray[Any, Any], block: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    high, wide = int(block[0]), int(block[1])
    rows, columns = (max(n - 1, 0) * b + 1 for n, b in zip(taps.shape[:2], (high, wide)))
    out = np.zeros((rows, columns, *taps.shape[2:]), taps.dtype)
    out[::high, ::wide] = taps
    return out
