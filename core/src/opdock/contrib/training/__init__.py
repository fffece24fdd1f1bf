"""`tf.contrib.training`: hyperparameters, samples, buckets. Loops and train ops are tf_slim's."""

from __future__ import annotations

from opdock.contrib.training.batch_sequences import batch_sequences_with_states
from opdock.contrib.training.bucketing import bucket, bucket_by_sequence_length
from opdock.contrib.training.device_setter import (
    GreedyLoadBalancingStrategy,
    RandomStrategy,
    byte_size_load_fn,
)
from opdock.contrib.training.hparam import HParams, parse_values
from opdock.contrib.training.resample import resample_at_rate, weighted_resample
from opdock.contrib.training.sampling_ops import rejection_sample, stratified_sample
from opdock.contrib.training.sequence_queueing_state_saver import (
    NextQueuedSequenceBatch,
    SequenceQueueingStateSaver,
)
from opdock.contrib.training.sgdr_learning_rate_decay import sgdr_decay

__all__ = [
    "GreedyLoadBalancingStrategy",
    "HParams",
    "NextQueuedSequenceBatch",
    "RandomStrategy",
    "SequenceQueueingStateSaver",
    "batch_sequences_with_states",
    "bucket",
    "bucket_by_sequence_length",
    "byte_size_load_fn",
    "parse_values",
    "rejection_sample",
    "resample_at_rate",
    "sgdr_decay",
    "stratified_sample",
    "weighted_resample",
]
