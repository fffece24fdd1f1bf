"""Candidate sampling: classes drawn to stand for all of many, and how often each was to come."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from opdock import shapes
from opdock.docstrings import explained
from opdock.graph.nodes.dispatch import extensible
from opdock.graph.nodes.seeds import get_seed
from opdock.ops.registry import OpSpec, ShapeSig, Traits, define_op
from opdock.ops.support import array_util
from opdock.shapes import Shape

# Public as tf.random and tf.nn.
__all__: list[str] = []

_SIGNATURE = (
    "true_classes: int64 -> sampled_candidates: int64, true_expected_count: float, "
    "sampled_expected_count: float"
)
_COUNTS = "num_true: int >= 1, num_sampled: int >= 1, unique: bool"
_RANGE = ", range_max: int >= 1"
_SEEDS = ", seed: int = 0, seed2: int = 0"


# ---------------------------------------------------------------- ops
def _sampler(name: str, attrs: str) -> OpSpec:
    op = define_op(name, _SIGNATURE, attrs, stateful=True)
    op.declare(Traits(random=True))
    op.shape(_sampled_shape)
    # TF registers no gradient; the losses stop it before.
    array_util.no_gradient(op)
    return op


def _sampled_shape(sig: ShapeSig) -> list[Shape]:
    count = sig.attrs["num_sampled"]
    batch = shapes.with_rank(sig.shapes[0], 2)[0]
    return [(count,), (batch, sig.attrs["num_true"]), (count,)]


uniform_op = _sampler("UniformCandidateSampler", _COUNTS + _RANGE + _SEEDS)
log_uniform_op = _sampler("LogUniformCandidateSampler", _COUNTS + _RANGE + _SEEDS)
learned_unigram_op = _sampler("LearnedUnigramCandidateSampler", _COUNTS + _RANGE + _SEEDS)
thread_unsafe_op = _sampler("ThreadUnsafeUnigramCandidateSampler", _COUNTS + _RANGE + _SEEDS)
fixed_unigram_op = _sampler(
    "FixedUnigramCandidateSampler",
    _COUNTS + _RANGE + ", vocab_file: string = '', distortion: float = 1.0, "
    "num_reserved_ids: int = 0, num_shards: int >= 1 = 1, shard: int >= 0 = 0, "
    "unigrams: list(float) = []" + _SEEDS,
)
all_op = _sampler("AllCandidateSampler", _COUNTS + _SEEDS)

accidental_hits_op = define_op(
    "ComputeAccidentalHits",
    "true_classes: int64, sampled_candidates: int64 -> indices: int32, ids: int64, weights: float",
    "num_true: int" + _SEEDS,
)
array_util.no_gradient(accidental_hits_op)


@accidental_hits_op.shape
def _accidental_hits_shape(sig: ShapeSig) -> list[Shape]:
    array_util.with_dim(shapes.with_rank(sig.shapes[0], 2)[1], sig.attrs["num_true"])
    array_util.vector_length(sig.shapes[1])
    return [(None,)] * 3


# ---------------------------------------------------------------- public functions
_WORDS = {
    "true_classes": "int64 [batch_size, num_true]: the target classes.",
    "num_true": "how many target classes each example has.",
    "num_sampled": "how many classes to draw.",
    "unique": "whether all classes drawn are different.",
    "range_max": "the number of classes.",
    "seed": "op seed; see `tf.set_random_seed`.",
    "name": "a name for the operation.",
    "returns": (
        "(sampled_candidates, true_expected_count, sampled_expected_count): the int64 classes "
        "drawn, and how often each target class and each drawn class was to be expected, float32."
    ),
    "raises": "tf.errors.InvalidArgumentError: at run time, there are too few different classes.",
}


@extensible
@explained(_WORDS)
def uniform_candidate_sampler(
    true_classes: Any, num_true: int, num_sampled: int, unique: bool, range_max: int,
    seed: int | None = None, name: str | None = None,
) -> Any:  # fmt: skip
    """Draws classes, each as likely as any other."""
    return _draw(uniform_op, **locals())


@extensible
@explained(_WORDS)
def log_uniform_candidate_sampler(
    true_classes: Any, num_true: int, num_sampled: int, unique: bool, range_max: int,
    seed: int | None = None, name: str | None = None,
) -> Any:  # fmt: skip
    """Draws classes of a Zipfian distribution: words sorted by descending frequency have one.

    The probability of a class is ``(log(class + 2) - log(class + 1)) / log(range_max + 1)``.
    """
    return _draw(log_uniform_op, **locals())


@extensible
@explained(_WORDS)
def learned_unigram_candidate_sampler(
    true_classes: Any, num_true: int, num_sampled: int, unique: bool, range_max: int,
    seed: int | None = None, name: str | None = None,
) -> Any:  # fmt: skip
    """Draws classes as often as they were targets in this session; each counts 1 at first."""
    return _draw(learned_unigram_op, **locals())


@extensible
@explained(
    _WORDS,
    vocab_file="a file with a line a class, whose last comma-separated field is its weight.",
    distortion="the power to which weights are raised.",
    num_reserved_ids="how many classes of weight 0 come first.",
    num_shards="of how many parts of the classes one is drawn from.",
    shard="which part.",
    unigrams="the weights, instead of a file.",
)
def fixed_unigram_candidate_sampler(
    true_classes: Any, num_true: int, num_sampled: int, unique: bool, range_max: int,
    vocab_file: str = "", distortion: float = 1.0, num_reserved_ids: int = 0, num_shards: int = 1,
    shard: int = 0, unigrams: Sequence[float] = (), seed: int | None = None,
    name: str | None = None,
) -> Any:  # fmt: skip
    """Draws classes by given weights."""
    return _draw(fixed_unigram_op, **locals())


@explained(_WORDS)
def all_candidate_sampler(
    true_classes: Any, num_true: int, num_sampled: int, unique: bool, seed: int | None = None,
    name: str | None = None,
) -> Any:  # fmt: skip
    """All classes, in order: for comparison with samplers proper."""
    return _draw(all_op, **locals())


def _draw(
    op: OpSpec, true_classes: Any, seed: int | None = None, name: str | None = None, **attrs: Any
) -> Any:
    seed1, seed2 = get_seed(seed)
    return op(true_classes, name=name, seed=seed1, seed2=seed2, **attrs)


@extensible
@explained(
    _WORDS, sampled_candidates="int64 [num_sampled]: the classes drawn.",
    returns=(
        "(indices, ids, weights): the rows of `true_classes` (int32) and the places in "
        "`sampled_candidates` (int64) of the hits, and for each the lowest float32."
    ),
)  # fmt: skip
def compute_accidental_hits(
    true_classes: Any, sampled_candidates: Any, num_true: int, seed: int | None = None,
    name: str | None = None,
) -> Any:  # fmt: skip
    """Where classes that were drawn are target classes."""
    seed1, seed2 = get_seed(seed)
    return accidental_hits_op(
        true_classes, sampled_candidates, num_true=num_true, seed=seed1, seed2=seed2, name=name
    )
