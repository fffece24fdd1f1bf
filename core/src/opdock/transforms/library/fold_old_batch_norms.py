"""`fold_old_batch_norms`: batch normalization ops go into the convolutions before them."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np

from opdock.transforms.batch_norms import (
    CONVOLUTIONS,
    NORMS,
    channels,
    scale_and_offset,
    scaled_weights,
)
from opdock.transforms.definitions import attribute
from opdock.transforms.editor import Editor, constant_value, copied
from opdock.transforms.patterns import ANY, Match, Pattern, replace
from opdock.transforms.registry import Context

Array = np.ndarray[Any, Any]

_log = logging.getLogger("tensorflow")
_CONST = Pattern("Const")


def _conv(number: int = 0) -> Pattern:
    weights = Pattern("*", name=f"weights{number}")
    return Pattern(CONVOLUTIONS, ANY, weights, name=f"conv{number}")


def _norm(source: Pattern) -> Pattern:
    return Pattern("|".join(NORMS), source, ANY, ANY, ANY, ANY)


_AFTER_CONV = _norm(_conv())
_AFTER_BLOCKS = _norm(Pattern("BatchToSpaceND", _conv(), _CONST, _CONST, name="between"))
_AFTER_TWO = _norm(
    Pattern("ConcatV2", _conv(0), _conv(1), Pattern("Const", name="axis"), name="between")
)


def fold_old_batch_norms(graph_def: Any, context: Context) -> Any:
    """Puts batch normalizations for inference into the constant weights of convolutions.

    All fused batch normalizations and BatchNormWithGlobalNormalization are found after a
    convolution, after one between SpaceToBatchND and BatchToSpaceND, and after two that are
    concatenated. Those that stay as they are, since something else uses the convolution or its
    parameters are no constants, are logged.
    """
    editor = Editor(graph_def, context.ends)
    reasons: dict[str, str] = {}

    def fold(match: Match) -> bool:
        why = reasons[match[""].name] = _fold(editor, match)
        return not why

    for pattern in (_AFTER_CONV, _AFTER_BLOCKS, _AFTER_TWO):
        replace(editor, pattern, fold)
    for node in editor:
        if node.op in NORMS:
            source = editor.source(node.input[0])
            why = reasons.get(node.name) or f"its input '{source.name}' is a {source.op}"
            _log.warning("Batch normalization '%s' is not folded: %s", node.name, why)
    return editor.result()


def _fold(editor: Editor, match: Match) -> str:
    """Folds one normalization, or says why not."""
    norm, between = match[""], match.get("between")
    convs = [match[key] for key in ("conv0", "conv1") if key in match]
    shared = [n.name for n in [*convs, *([between] if between else [])] if editor.is_shared(n.name)]
    if shared:
        return f"'{shared[0]}' has other uses"
    later = [user for user in editor.users(norm.name) if _takes_statistics(user, norm.name)]
    if later:
        return f"'{later[0].name}' takes its mean or variance"
    kernels = [match[f"weights{i}"] for i in range(len(convs))]
    found = scale_and_offset(editor, norm, kernels)
    if isinstance(found, str):
        return found
    counts = []
    for conv, kernel in zip(convs, kernels, strict=True):
        weights = constant_value(kernel)
        count = channels(conv, weights)
        if count is None:
            return (
                f"'{kernel.name}' of the shape {list(weights.shape)} is no weights of a {conv.op}"
            )
        counts.append(count)
    along = 1 if attribute(convs[0], "data_format") == "NCHW" else 3
    joined = "axis" in match and int(constant_value(match["axis"])) % 4 == along
    parts = _shares(found, counts, joined)
    if parts is None:
        return f"'{convs[0].name}' has {counts[0]} channels, not {len(found[0])}"
    if between is None:
        _scale(editor, convs[0], kernels[0], parts[0], norm.name)
        return ""
    sums = [
        _scale(editor, conv, kernel, part, editor.unique(f"{conv.name}/bn"))
        for conv, kernel, part in zip(convs, kernels, parts, strict=True)
    ]
    made = copied(between, norm.name)
    made.input[: len(sums)] = sums
    editor.put(made)
    return ""


def _takes_statistics(user: Any, name: str) -> bool:
    return any(text.startswith(f"{name}:") and text != f"{name}:0" for text in user.input)


def _shares(
    found: tuple[Array, Array], counts: list[int], joined: bool
) -> list[tuple[Array, Array]] | None:
    """Scale and offset of each convolution: parts of them if channels are joined; or None."""
    scale, offset = found
    if joined:
        if sum(counts) != len(scale):
            return None
        cut = [counts[0]]
        return list(zip(np.split(scale, cut), np.split(offset, cut), strict=True))
    return None if set(counts) != {len(scale)} else [found] * len(counts)


def _scale(editor: Editor, conv: Any, kernel: Any, by: tuple[Array, Array], name: str) -> str:
    """A convolution with other weights, and `name`, which adds the offset to it."""
    moved = copied(conv, conv.name)
    moved.input[1] = scaled_weights(editor, conv, kernel, by[0])
    dtype = constant_value(kernel).dtype
    offset = editor.constant(editor.unique(f"{conv.name}_bn_offset"), by[1].astype(dtype))
    editor.put(moved)
    made = type(conv)(op="BiasAdd", name=name, input=[conv.name, offset], device=conv.device)
    for key in ("T", "data_format"):
        if key in conv.attr:
            made.attr[key].CopyFrom(conv.attr[key])
    return str(editor.put(made).name)
