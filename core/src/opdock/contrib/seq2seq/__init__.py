"""`tf.contrib.seq2seq`: decoders, their helpers, attention and beam search."""

from __future__ import annotations

from opdock.contrib.seq2seq.attention import (
    AttentionMechanism,
    BahdanauAttention,
    BahdanauMonotonicAttention,
    LuongAttention,
    LuongMonotonicAttention,
    hardmax,
    monotonic_attention,
    safe_cumprod,
)
from opdock.contrib.seq2seq.attention_wrapper import AttentionWrapper, AttentionWrapperState
from opdock.contrib.seq2seq.basic import BasicDecoder, BasicDecoderOutput
from opdock.contrib.seq2seq.beam_layout import tile_batch
from opdock.contrib.seq2seq.beam_paths import gather_tree_from_array
from opdock.contrib.seq2seq.beam_search import BeamSearchDecoder, FinalBeamSearchDecoderOutput
from opdock.contrib.seq2seq.beam_step import BeamSearchDecoderOutput, BeamSearchDecoderState
from opdock.contrib.seq2seq.decoder import Decoder, dynamic_decode
from opdock.contrib.seq2seq.helpers import (
    CustomHelper,
    GreedyEmbeddingHelper,
    Helper,
    InferenceHelper,
    SampleEmbeddingHelper,
    TrainingHelper,
)
from opdock.contrib.seq2seq.loss import SequenceLoss, sequence_loss
from opdock.contrib.seq2seq.scheduled import (
    ScheduledEmbeddingTrainingHelper,
    ScheduledOutputTrainingHelper,
)
from opdock.ops.beam_search import gather_tree

__all__ = [
    "AttentionMechanism", "AttentionWrapper", "AttentionWrapperState", "BahdanauAttention",
    "BahdanauMonotonicAttention", "BasicDecoder", "BasicDecoderOutput", "BeamSearchDecoder",
    "BeamSearchDecoderOutput", "BeamSearchDecoderState", "CustomHelper", "Decoder",
    "FinalBeamSearchDecoderOutput", "GreedyEmbeddingHelper", "Helper", "InferenceHelper",
    "LuongAttention", "LuongMonotonicAttention", "SampleEmbeddingHelper",
    "ScheduledEmbeddingTrainingHelper", "ScheduledOutputTrainingHelper", "SequenceLoss",
    "TrainingHelper",
    "dynamic_decode", "gather_tree", "gather_tree_from_array", "hardmax", "monotonic_attention",
    "safe_cumprod", "sequence_loss", "tile_batch",
]  # fmt: skip
