"""What makes the masks of a graph anew, again and again, while it is trained."""

from __future__ import annotations

import re
from typing import Any, TypeVar

import opdock as tf
from opdock.contrib.model_pruning import pruning_utils
from opdock.contrib.model_pruning.masks import (
    apply_mask,
    get_masked_weights,
    get_masks,
    get_thresholds,
    get_weight_sparsity,
    get_weights,
)
from opdock.contrib.training.hparam import HParams

__all__ = [
    "Pruning", "apply_mask", "get_masked_weights", "get_masks", "get_pruning_hparams",
    "get_thresholds", "get_weight_sparsity", "get_weights",
]  # fmt: skip

_T = TypeVar("_T")


def get_pruning_hparams() -> Any:
    """What says how a graph is pruned, with defaults.

    `name` is that of operations. Masks are made every `pruning_frequency` steps, from
    `begin_pruning_step` to `end_pruning_step` (-1: to the end). The part that is 0 goes from
    `initial_sparsity` to `target_sparsity`, between `sparsity_function_begin_step` and
    `sparsity_function_end_step`, fast at first where `sparsity_function_exponent` is above 1;
    `weight_sparsity_map` has other targets, as "pattern of a variable's name:target". A threshold
    is an average of itself, weighing `threshold_decay`, and of what it would be. Blocks of
    `block_height` by `block_width` weights have one mask, by their average or largest size
    (`block_pooling_function`, "AVG" or "MAX"); -1 is all of a dimension, and `block_dims_map` has
    others, as "pattern:4x8". `nbins` is there for programs that set it. With `use_tpu` variables
    are resources.
    """
    return HParams(
        name="model_pruning", begin_pruning_step=0, end_pruning_step=-1, weight_sparsity_map=[""],
        block_dims_map=[""], threshold_decay=0.0, pruning_frequency=10, nbins=256, block_height=1,
        block_width=1, block_pooling_function="AVG", initial_sparsity=0.0, target_sparsity=0.5,
        sparsity_function_begin_step=0, sparsity_function_end_step=100,
        sparsity_function_exponent=3.0, use_tpu=False,
    )  # fmt: skip


class Pruning:
    """The operations that make a graph's masks anew.

    Args:
        spec: see `get_pruning_hparams`, its defaults if None.
        global_step: the number of steps; that of the graph if None.
        sparsity: the part that is to be 0, in the place of what `spec` says.

    Raises:
        ValueError: `spec` contradicts itself.
    """

    def __init__(self, spec: Any = None, global_step: Any = None, sparsity: Any = None) -> None:
        self._spec = spec or get_pruning_hparams()
        _check(self._spec)
        step = tf.train.get_global_step() if global_step is None else global_step
        self._global_step = tf.cast(step, tf.int32)
        self._sparsity = self._sparsity_now() if sparsity is None else sparsity
        self._block_dims_map = [
            (pattern, _block(pattern, dims)) for pattern, dims in _pairs(self._spec.block_dims_map)
        ]
        self._sparsity_map = [
            (pattern, float(part)) for pattern, part in _pairs(self._spec.weight_sparsity_map)
        ]
        if any(part >= 1 for _, part in self._sparsity_map):
            raise ValueError("Weight sparsity can not exceed 1.0")
        with tf.variable_scope(
            self._spec.name, reuse=tf.AUTO_REUSE, use_resource=self._spec.use_tpu
        ):
            self._last_update_step = tf.get_variable(
                "last_mask_update_step", [], tf.int32, tf.zeros_initializer(), trainable=False
            )
        self._assign_ops: list[Any] = []

    def mask_update_op(self) -> Any:
        """The operation that makes all masks anew."""
        with tf.name_scope(self._spec.name):
            if not self._assign_ops:
                self._assign_ops = self._assignments()
            noted = tf.assign(
                self._last_update_step, self._global_step, name="last_mask_update_step_assign"
            )
            with tf.control_dependencies([noted, *self._assign_ops]):
                return tf.no_op("mask_update")

    def conditional_mask_update_op(self) -> Any:
        """The operation that does so in the steps in which it is due, to be run in each."""
        spec, step = self._spec, self._global_step
        with tf.name_scope(spec.name):
            due = (step >= spec.begin_pruning_step) & (
                self._last_update_step + spec.pruning_frequency <= step
            )
            if spec.end_pruning_step >= 0:
                due &= step <= spec.end_pruning_step
        return tf.cond(due, self.mask_update_op, tf.no_op)

    def add_pruning_summaries(self) -> None:
        """Adds summaries of thresholds, and of what part of each mask is 0."""
        with tf.name_scope(f"{self._spec.name}_summaries"):
            tf.summary.scalar("sparsity", self._sparsity)
            tf.summary.scalar("last_mask_update_step", self._last_update_step)
            for mask, threshold in zip(get_masks(), get_thresholds(), strict=True):
                tf.summary.scalar(f"{mask.op.name}/sparsity", tf.nn.zero_fraction(mask))
                tf.summary.scalar(f"{threshold.op.name}/threshold", threshold)

    def print_hparams(self) -> None:
        """Logs what says how the graph is pruned."""
        tf.logging.info(self._spec.to_json())

    def _sparsity_now(self) -> Any:
        spec = self._spec
        begin, end = spec.sparsity_function_begin_step, spec.sparsity_function_end_step
        with tf.name_scope(spec.name):
            done = tf.cast(self._global_step - begin, tf.float32) / (end - begin)
            left = (1 - tf.clip_by_value(done, 0.0, 1.0)) ** spec.sparsity_function_exponent
            change = (spec.initial_sparsity - spec.target_sparsity) * left
            return tf.add(change, spec.target_sparsity, name="sparsity")

    def _assignments(self) -> list[Any]:
        assigned = []
        for mask, threshold, weights in zip(
            get_masks(), get_thresholds(), get_weights(), strict=True
        ):
            new_threshold, new_mask = self._maybe_update_block_mask(weights, threshold)
            assigned += tf.nest.flatten([threshold.assign(new_threshold), mask.assign(new_mask)])
        return assigned

    # TensorFlow's name, and that of the next, which programs override.
    def _maybe_update_block_mask(self, weights: Any, threshold: Any) -> tuple[Any, Any]:
        """The new threshold and mask of weights, by blocks if they are a matrix."""
        name = weights.name.partition(":")[0]
        # Variables in parts are pruned as a whole.
        size = tf.abs(tf.convert_to_tensor(weights))
        block = _only_match("block_dims_map", self._block_dims_map, name)
        height, width = block or (self._spec.block_height, self._spec.block_width)
        with tf.name_scope(f"{name}_pruning_ops"):
            matrix = tf.squeeze(size)
            if matrix.shape.ndims != 2 or (height, width) == (1, 1):
                return self._update_mask(size, threshold, name)
            kind = self._spec.block_pooling_function
            if kind not in ("AVG", "MAX"):
                raise ValueError(f"Unknown pooling function for block sparsity: {kind}")
            rows, columns = matrix.shape.as_list()
            dims: list[Any] = [rows if height == -1 else height, columns if width == -1 else width]
            pooled = pruning_utils.factorized_pool(matrix, dims, kind, dims, "SAME")
            new_threshold, of_blocks = self._update_mask(pooled, threshold, name)
            mask = pruning_utils.expand_tensor(of_blocks, dims)[:rows, :columns]
            return new_threshold, tf.reshape(mask, tf.shape(size))

    def _update_mask(
        self, weights: Any, threshold: Any, name: str | None = None
    ) -> tuple[Any, Any]:
        name = weights.op.name if name is None else name
        size = tf.abs(weights)
        sparsity = self._sparsity
        target = _only_match("weight_sparsity_map", self._sparsity_map, name)
        if target is not None:
            sparsity *= target / self._spec.target_sparsity
        count = tf.size(size)
        kept = tf.cast(tf.round(tf.cast(count, tf.float32) * (1 - sparsity)), tf.int32)
        values, _ = tf.nn.top_k(tf.reshape(size, [-1]), k=count)
        decay = self._spec.threshold_decay
        smoothed = tf.gather(values, kept - 1) * (1 - decay) + threshold * decay
        return smoothed, tf.cast(size >= smoothed, threshold.dtype.base_dtype)


def _check(spec: Any) -> None:
    """Raises ValueError if what says how to prune contradicts itself."""
    begin, end = spec.begin_pruning_step, spec.end_pruning_step
    if begin < 0:
        raise ValueError("Illegal value for begin_pruning_step")
    if begin >= end != -1:
        raise ValueError(
            f"Pruning must begin before it can end. begin_step={begin}, end_step={end}. Set "
            "end_pruning_step to -1 if pruning is required till training stops"
        )
    if spec.sparsity_function_begin_step < 0:
        raise ValueError("Illegal value for sparsity_function_begin_step")
    if spec.sparsity_function_begin_step >= spec.sparsity_function_end_step:
        raise ValueError("Sparsity function requires begin_step < end_step")
    for name in ("threshold_decay", "initial_sparsity", "target_sparsity"):
        if not 0.0 <= getattr(spec, name) < 1.0:
            raise ValueError(f"{name} must be in range [0,1)")


def _pairs(texts: list[str]) -> list[tuple[re.Pattern[str], str]]:
    """Patterns of names and what follows them."""
    split = [text.split(":") for text in texts if text]
    return [(re.compile(pattern), value) for pattern, value in split]


def _block(pattern: re.Pattern[str], text: str) -> tuple[int, int]:
    dims = text.split("x")
    if len(dims) != 2:
        raise ValueError(f"Expected 2 values for block dim for {pattern.pattern}, got {dims}")
    return int(dims[0]), int(dims[1])


def _only_match(option: str, choices: list[tuple[re.Pattern[str], _T]], name: str) -> _T | None:
    found = [value for pattern, value in choices if pattern.search(name)]
    if len(found) > 1:
        raise ValueError(f"Multiple matches in {option} for weight {name}")
    return found[0] if found else None
