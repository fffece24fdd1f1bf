"""`tf.contrib.training`: hyperparameters, samples, buckets, and steps and loops of training."""

from __future__ import annotations

from opdock.contrib.training.batch_sequences import batch_sequences_with_states
from opdock.contrib.training.bucketing import bucket, bucket_by_sequence_length
from opdock.contrib.training.device_setter import (
    GreedyLoadBalancingStrategy,
    RandomStrategy,
    byte_size_load_fn,
)
from opdock.contrib.training.evaluating import (
    StopAfterNEvalsHook,
    SummaryAtEndHook,
    checkpoints_iterator,
    evaluate_once,
    evaluate_repeatedly,
    get_or_create_eval_step,
    wait_for_new_checkpoint,
)
from opdock.contrib.training.hparam import HParams, parse_values
from opdock.contrib.training.resample import resample_at_rate, weighted_resample
from opdock.contrib.training.sampling_ops import rejection_sample, stratified_sample
from opdock.contrib.training.sequence_queueing_state_saver import (
    NextQueuedSequenceBatch,
    SequenceQueueingStateSaver,
)
from opdock.contrib.training.sgdr_learning_rate_decay import sgdr_decay
from opdock.contrib.training.train_ops import (
    add_gradients_summaries,
    clip_gradient_norms,
    clip_gradient_norms_fn,
    create_train_op,
    multiply_gradients,
    train,
)

__all__ = [
    "GreedyLoadBalancingStrategy", "HParams", "NextQueuedSequenceBatch", "RandomStrategy",
    "SequenceQueueingStateSaver", "StopAfterNEvalsHook", "SummaryAtEndHook",
    "add_gradients_summaries", "batch_sequences_with_states", "bucket",
    "bucket_by_sequence_length", "byte_size_load_fn", "checkpoints_iterator",
    "clip_gradient_norms", "clip_gradient_norms_fn", "create_train_op", "evaluate_once",
    "evaluate_repeatedly", "get_or_create_eval_step", "multiply_gradients", "parse_values",
    "rejection_sample", "resample_at_rate", "sgdr_decay", "stratified_sample", "train",
    "wait_for_new_checkpoint", "weighted_resample",
]  # fmt: skip
