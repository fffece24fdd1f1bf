"""`tf.initializers`."""

from __future__ import annotations

from opdock.graph.variables.initializers import (
    Constant,
    GlorotNormal,
    GlorotUniform,
    Identity,
    Initializer,
    Ones,
    Orthogonal,
    RandomNormal,
    RandomUniform,
    TruncatedNormal,
    UniformUnitScaling,
    VarianceScaling,
    Zeros,
    he_normal,
    he_uniform,
    lecun_normal,
    lecun_uniform,
)
from opdock.graph.variables.variable_lists import global_variables_initializer as global_variables
from opdock.graph.variables.variable_lists import local_variables_initializer as local_variables
from opdock.graph.variables.variable_lists import variables_initializer as variables
from opdock.lookup.initialization import tables_initializer

zeros = Zeros
ones = Ones
constant = Constant
random_uniform = RandomUniform
random_normal = RandomNormal
truncated_normal = TruncatedNormal
uniform_unit_scaling = UniformUnitScaling
variance_scaling = VarianceScaling
orthogonal = Orthogonal
glorot_uniform = GlorotUniform
glorot_normal = GlorotNormal
identity = Identity

__all__ = [
    "Constant", "GlorotNormal", "GlorotUniform", "Identity", "Initializer", "Ones", "Orthogonal",
    "RandomNormal", "RandomUniform", "TruncatedNormal", "UniformUnitScaling", "VarianceScaling",
    "Zeros", "constant", "global_variables", "glorot_normal", "glorot_uniform", "he_normal",
    "he_uniform", "identity", "lecun_normal", "lecun_uniform", "local_variables", "ones",
    "orthogonal", "random_normal", "random_uniform", "tables_initializer", "truncated_normal",
    "uniform_unit_scaling", "variables", "variance_scaling", "zeros",
]  # fmt: skip
