"""Distributions whose positive parameters are the softplus of what is given."""

from __future__ import annotations

from typing import Any

from opdock.distributions.beta import Beta
from opdock.distributions.distribution import arguments
from opdock.distributions.gamma import Exponential, Gamma
from opdock.distributions.laplace import Laplace
from opdock.distributions.normal import Normal
from opdock.distributions.student_t import StudentT
from opdock.graph.nodes.scopes import name_scope
from opdock.ops.elementary import abs as absolute
from opdock.ops.elementary import floor
from opdock.ops.nn import softplus

__all__ = [
    "BetaWithSoftplusConcentration", "ExponentialWithSoftplusRate",
    "GammaWithSoftplusConcentrationRate", "LaplaceWithSoftplusScale", "NormalWithSoftplusScale",
    "StudentTWithAbsDfSoftplusScale",
]  # fmt: skip


class BetaWithSoftplusConcentration(Beta):
    """`Beta` with the softplus of both parameters."""

    def __init__(
        self, concentration1: Any, concentration0: Any, validate_args: bool = False,
        allow_nan_stats: bool = True, name: str = "BetaWithSoftplusConcentration",
    ) -> None:  # fmt: skip
        parameters = arguments(locals())
        with name_scope(name, values=[concentration1, concentration0]) as scope:
            one = softplus(concentration1, name="softplus_concentration1")
            zero = softplus(concentration0, name="softplus_concentration0")
            super().__init__(one, zero, validate_args, allow_nan_stats, scope)
        self._parameters = parameters


class ExponentialWithSoftplusRate(Exponential):
    """`Exponential` with the softplus of `rate`."""

    def __init__(
        self, rate: Any, validate_args: bool = False, allow_nan_stats: bool = True,
        name: str = "ExponentialWithSoftplusRate",
    ) -> None:  # fmt: skip
        parameters = arguments(locals())
        with name_scope(name, values=[rate]) as scope:
            positive = softplus(rate, name="softplus_rate")
            super().__init__(positive, validate_args, allow_nan_stats, scope)
        self._parameters = parameters


class GammaWithSoftplusConcentrationRate(Gamma):
    """`Gamma` with the softplus of both parameters."""

    def __init__(
        self, concentration: Any, rate: Any, validate_args: bool = False,
        allow_nan_stats: bool = True, name: str = "GammaWithSoftplusConcentrationRate",
    ) -> None:  # fmt: skip
        parameters = arguments(locals())
        with name_scope(name, values=[concentration, rate]) as scope:
            positive = softplus(concentration, name="softplus_concentration")
            positive_rate = softplus(rate, name="softplus_rate")
            super().__init__(positive, positive_rate, validate_args, allow_nan_stats, scope)
        self._parameters = parameters


class LaplaceWithSoftplusScale(Laplace):
    """`Laplace` with the softplus of `scale`."""

    def __init__(
        self, loc: Any, scale: Any, validate_args: bool = False, allow_nan_stats: bool = True,
        name: str = "LaplaceWithSoftplusScale",
    ) -> None:  # fmt: skip
        parameters = arguments(locals())
        with name_scope(name, values=[loc, scale]) as scope:
            positive = softplus(scale, name="softplus_scale")
            super().__init__(loc, positive, validate_args, allow_nan_stats, scope)
        self._parameters = parameters


class NormalWithSoftplusScale(Normal):
    """`Normal` with the softplus of `scale`."""

    def __init__(
        self, loc: Any, scale: Any, validate_args: bool = False, allow_nan_stats: bool = True,
        name: str = "NormalWithSoftplusScale",
    ) -> None:  # fmt: skip
        parameters = arguments(locals())
        with name_scope(name, values=[scale]) as scope:
            positive = softplus(scale, name="softplus_scale")
            super().__init__(loc, positive, validate_args, allow_nan_stats, scope)
        self._parameters = parameters


class StudentTWithAbsDfSoftplusScale(StudentT):
    """`StudentT` with whole degrees of freedom and the softplus of `scale`."""

    def __init__(
        self, df: Any, loc: Any, scale: Any, validate_args: bool = False,
        allow_nan_stats: bool = True, name: str = "StudentTWithAbsDfSoftplusScale",
    ) -> None:  # fmt: skip
        parameters = arguments(locals())
        with name_scope(name, values=[df, scale]) as scope:
            whole = floor(absolute(df))
            positive = softplus(scale, name="softplus_scale")
            super().__init__(whole, loc, positive, validate_args, allow_nan_stats, scope)
        self._parameters = parameters
