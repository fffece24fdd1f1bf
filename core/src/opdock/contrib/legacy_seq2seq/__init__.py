"""`tf.contrib.legacy_seq2seq`: models over lists, with a tensor a step."""

from __future__ import annotations

from opdock.contrib.legacy_seq2seq.decoders import (
    attention_decoder,
    embedding_attention_decoder,
    embedding_rnn_decoder,
    rnn_decoder,
)
from opdock.contrib.legacy_seq2seq.loss import (
    model_with_buckets,
    sequence_loss,
    sequence_loss_by_example,
)
from opdock.contrib.legacy_seq2seq.models import (
    basic_rnn_seq2seq,
    embedding_attention_seq2seq,
    embedding_rnn_seq2seq,
    embedding_tied_rnn_seq2seq,
    one2many_rnn_seq2seq,
    tied_rnn_seq2seq,
)

__all__ = [
    "attention_decoder", "basic_rnn_seq2seq", "embedding_attention_decoder",
    "embedding_attention_seq2seq", "embedding_rnn_decoder", "embedding_rnn_seq2seq",
    "embedding_tied_rnn_seq2seq", "model_with_buckets", "one2many_rnn_seq2seq", "rnn_decoder",
    "sequence_loss", "sequence_loss_by_example", "tied_rnn_seq2seq",
]  # fmt: skip
