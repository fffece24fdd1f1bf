"""`tf.random`: the random functions under their short names."""

from __future__ import annotations

from opdock.graph.nodes.seeds import get_seed, set_random_seed
from opdock.ops.candidate_sampling import (
    all_candidate_sampler,
    fixed_unigram_candidate_sampler,
    learned_unigram_candidate_sampler,
    log_uniform_candidate_sampler,
    uniform_candidate_sampler,
)
from opdock.ops.composed import random_generator as _generator
from opdock.ops.random import random_normal as normal
from opdock.ops.random import random_shuffle as shuffle
from opdock.ops.random import random_uniform as uniform
from opdock.ops.random import truncated_normal
from opdock.ops.random_dist import categorical, multinomial
from opdock.ops.random_dist import random_gamma as gamma
from opdock.ops.random_dist import random_poisson as poisson
from opdock.ops.random_stateless import (
    stateless_categorical,
    stateless_multinomial,
    stateless_truncated_normal,
)
from opdock.ops.random_stateless import stateless_random_normal as stateless_normal
from opdock.ops.random_stateless import stateless_random_uniform as stateless_uniform

__all__ = [
    "all_candidate_sampler", "categorical", "experimental", "fixed_unigram_candidate_sampler",
    "gamma", "get_seed",
    "learned_unigram_candidate_sampler", "log_uniform_candidate_sampler", "multinomial", "normal",
    "poisson", "set_random_seed", "shuffle", "stateless_categorical", "stateless_multinomial",
    "stateless_normal", "stateless_truncated_normal", "stateless_uniform", "truncated_normal",
    "uniform", "uniform_candidate_sampler",
]  # fmt: skip


class experimental:
    """Generators whose state is a variable."""

    Generator = _generator.Generator
    create_rng_state = staticmethod(_generator.create_rng_state)
    get_global_generator = staticmethod(_generator.get_global_generator)
    set_global_generator = staticmethod(_generator.set_global_generator)
