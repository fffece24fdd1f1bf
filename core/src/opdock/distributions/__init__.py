"""`tf.distributions`: probability distributions, their samples and the divergences between them."""

from __future__ import annotations

from opdock.distributions.bernoulli import Bernoulli
from opdock.distributions.beta import Beta
from opdock.distributions.categorical import Categorical
from opdock.distributions.dirichlet import Dirichlet
from opdock.distributions.distribution import (
    FULLY_REPARAMETERIZED,
    NOT_REPARAMETERIZED,
    Distribution,
    ReparameterizationType,
)
from opdock.distributions.divergence import RegisterKL, kl_divergence
from opdock.distributions.gamma import Exponential, Gamma
from opdock.distributions.laplace import Laplace
from opdock.distributions.multinomial import DirichletMultinomial, Multinomial
from opdock.distributions.normal import Normal
from opdock.distributions.student_t import StudentT
from opdock.distributions.uniform import Uniform

__all__ = [
    "FULLY_REPARAMETERIZED", "NOT_REPARAMETERIZED", "Bernoulli", "Beta", "Categorical",
    "Dirichlet", "DirichletMultinomial", "Distribution", "Exponential", "Gamma", "Laplace",
    "Multinomial", "Normal", "RegisterKL", "ReparameterizationType", "StudentT", "Uniform",
    "kl_divergence",
]  # fmt: skip
