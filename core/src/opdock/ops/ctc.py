"""Connectionist temporal classification: the loss of unaligned label sequences."""

from __future__ import annotations

from typing import Any

from opdock import shapes
from opdock.graph.nodes.composite import SparseTensor
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.dispatch import extensible
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.ops.registry import Shape, ShapeSig, define_op
from opdock.ops.support.nn_util import emit, renamed

__all__ = [
    "ctc_beam_search_decoder", "ctc_beam_search_decoder_v2", "ctc_greedy_decoder", "ctc_loss",
]  # fmt: skip

ctc_loss_op = define_op(
    "CTCLoss",
    "inputs: T, labels_indices: int64, labels_values: int32, sequence_length: int32 -> "
    "loss: T, gradient: T",
    "preprocess_collapse_repeated: bool = false, ctc_merge_repeated: bool = true, "
    "ignore_longer_outputs_than_inputs: bool = false, T: {float, double} = DT_FLOAT",
)  # fmt: skip
ctc_greedy_decoder_op = define_op(
    "CTCGreedyDecoder",
    "inputs: T, sequence_length: int32 -> decoded_indices: int64, decoded_values: int64, "
    "decoded_shape: int64, log_probability: T",
    "merge_repeated: bool = false, T: {float, double} = DT_FLOAT",
).not_differentiable()  # fmt: skip

ctc_beam_search_decoder_op = define_op(
    "CTCBeamSearchDecoder",
    "inputs: T, sequence_length: int32 -> decoded_indices: top_paths * int64, "
    "decoded_values: top_paths * int64, decoded_shape: top_paths * int64, log_probability: T",
    "beam_width: int >= 1, top_paths: int >= 1, merge_repeated: bool = true, "
    "T: {float, double} = DT_FLOAT",
).not_differentiable()  # fmt: skip


@ctc_loss_op.shape
def _ctc_loss_shape(sig: ShapeSig) -> list[Shape]:
    inputs = shapes.with_rank(sig.shapes[0], 3)
    indices, values = shapes.with_rank(sig.shapes[1], 2), shapes.with_rank(sig.shapes[2], 1)
    (batch,) = shapes.with_rank(sig.shapes[3], 1)
    shapes.merge_dim(indices[0], values[0])
    batch = shapes.merge_dim(inputs[1], batch)
    return [(batch,), (inputs[0], batch, inputs[2])]


@ctc_greedy_decoder_op.shape
def _ctc_greedy_decoder_shape(sig: ShapeSig) -> list[Shape]:
    inputs = shapes.with_rank(sig.shapes[0], 3)
    (batch,) = shapes.with_rank(sig.shapes[1], 1)
    batch = shapes.merge_dim(inputs[1], batch)
    return [(None, 2), (None,), (2,), (batch, 1)]


@ctc_beam_search_decoder_op.shape
def _ctc_beam_search_decoder_shape(sig: ShapeSig) -> list[Shape]:
    inputs = shapes.with_rank(sig.shapes[0], 3)
    (batch,) = shapes.with_rank(sig.shapes[1], 1)
    batch = shapes.merge_dim(inputs[1], batch)
    paths = sig.attrs["top_paths"]
    found: list[Shape] = [(None, 2)] * paths + [(None,)] * paths + [(2,)] * paths
    return [*found, (batch, paths)]


@ctc_loss_op.gradient
def _ctc_loss_grad(op: Operation, grad_loss: Any, unused: Any) -> list[Any]:
    gradient = emit(
        "PreventGradient", op.outputs[1],
        message="Currently there is no way to take the second derivative of ctc_loss due to the "
        "fused implementation's interaction with tf.gradients()",
    )  # fmt: skip
    return [emit("ExpandDims", grad_loss, -1) * gradient, None, None, None]


@extensible
def ctc_loss(
    labels: Any, inputs: Any = None, sequence_length: Any = None,
    preprocess_collapse_repeated: bool = False, ctc_merge_repeated: bool = True,
    ignore_longer_outputs_than_inputs: bool = False, time_major: bool = True, logits: Any = None,
) -> Tensor:  # fmt: skip
    """The negative log probability of label sequences, summed over all their alignments.

    Args:
        labels: an int32 SparseTensor [batch, max label length]; class `num_classes - 1` is the
            blank and may not occur.
        inputs: logits [time, batch, num_classes], or batch first when not `time_major`.
        sequence_length: int32 [batch], how many steps of each entry count.
        preprocess_collapse_repeated: whether to merge repeated labels beforehand.
        ctc_merge_repeated: whether repeated classes of an alignment are one label.
        ignore_longer_outputs_than_inputs: whether an entry with more labels than steps has loss 0
            instead of being an error.
        time_major: whether time is the first dimension of `inputs`.
        logits: an alias of `inputs`.

    Returns:
        The losses [batch].

    Raises:
        TypeError: `labels` is not a SparseTensor.
        InvalidArgumentError: when run, a label is out of range or does not fit its time.
    """
    if not hasattr(labels, "indices") or not hasattr(labels, "dense_shape"):
        raise TypeError("Expected labels (first argument) to be a SparseTensor")
    inputs = convert_to_tensor(renamed("logits", logits, "inputs", inputs), name="logits")
    if not time_major:
        inputs = emit("Transpose", inputs, [1, 0, 2])
    loss, _ = ctc_loss_op(
        inputs, labels.indices, labels.values, sequence_length,
        preprocess_collapse_repeated=preprocess_collapse_repeated,
        ctc_merge_repeated=ctc_merge_repeated,
        ignore_longer_outputs_than_inputs=ignore_longer_outputs_than_inputs,
    )  # fmt: skip
    return loss  # type: ignore[no-any-return]


@extensible
def ctc_greedy_decoder(inputs: Any, sequence_length: Any, merge_repeated: bool = True) -> Any:
    """Takes the best class of each step, drops blanks and (optionally) repeats.

    Args:
        inputs: logits [time, batch, num_classes].
        sequence_length: int32 [batch], how many steps of each entry count.
        merge_repeated: whether repeated classes without a blank between are one.

    Returns:
        `([decoded], neg_sum_logits)`: an int64 SparseTensor of class ids, and minus the sum of the
        chosen logits, [batch, 1].
    """
    indices, values, shape, score = ctc_greedy_decoder_op(
        inputs, sequence_length, merge_repeated=merge_repeated
    )
    return [SparseTensor(indices, values, shape)], score


@extensible
def ctc_beam_search_decoder(
    inputs: Any, sequence_length: Any, beam_width: int = 100, top_paths: int = 1,
    merge_repeated: bool = True,
) -> Any:  # fmt: skip
    """The likeliest label sequences, each summed over the alignments that a beam search finds.

    Args:
        inputs: logits [time, batch, num_classes]; the last class is the blank.
        sequence_length: int32 [batch], how many steps of each entry count.
        beam_width: how many sequences are followed at a time.
        top_paths: how many are returned, at most `beam_width`.
        merge_repeated: whether repeated classes of a result become one, blanks between them or not.

    Returns:
        `(decoded, log_probability)`: an int64 SparseTensor of class ids for each of the paths, and
        the logarithms of their probabilities, [batch, top_paths].

    Raises:
        InvalidArgumentError: when run, more paths than the beam has, or lengths that do not fit.
    """
    indices, values, dense_shapes, score = ctc_beam_search_decoder_op(
        inputs, sequence_length, beam_width=beam_width, top_paths=top_paths,
        merge_repeated=merge_repeated,
    )  # fmt: skip
    parts = zip(indices, values, dense_shapes, strict=True)
    return [SparseTensor(*part) for part in parts], score


@extensible
def ctc_beam_search_decoder_v2(
    inputs: Any, sequence_length: Any, beam_width: int = 100, top_paths: int = 1
) -> Any:
    """`ctc_beam_search_decoder` that keeps repeated classes of a result.

    Args:
        inputs: logits of [time, batch, classes], the last class the blank.
        sequence_length: the length of each sequence, int32.
        beam_width: how many prefixes are kept.
        top_paths: how many results there are.
    """
    return ctc_beam_search_decoder(inputs, sequence_length, beam_width, top_paths, False)
