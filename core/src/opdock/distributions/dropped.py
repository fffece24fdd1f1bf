"""What `tf.contrib.distributions` had and TensorFlow Probability, which it became, has dropped."""

from __future__ import annotations

from typing import Any

from tensorflow_probability.python.distributions import (
    Chi2,
    InverseGamma,
    MultivariateNormalDiag,
    Wishart,
)

import opdock as tf

__all__ = [
    "Chi2WithAbsDf", "InverseGammaWithSoftplusConcentrationRate",
    "MultivariateNormalDiagWithSoftplusScale", "WishartCholesky", "WishartFull",
]  # fmt: skip


class _Wishart(Wishart):  # type: ignore[misc]
    """A Wishart distribution that says whether matrices come as their Cholesky factors."""

    @property
    def cholesky_input_output_matrices(self) -> bool:
        """Whether matrices that are taken and given are Cholesky factors."""
        return bool(self.input_output_cholesky)


class WishartCholesky(_Wishart):
    """A Wishart distribution by the Cholesky factor of its scale.

    Args:
        df: the degrees of freedom.
        scale: the lower factor of the scale matrix.
        cholesky_input_output_matrices: whether matrices that are taken and given are factors too.
        validate_args: whether arguments are checked when it runs.
        allow_nan_stats: whether what is not defined is nan, rather than an error.
        name: a name for the operations.
    """

    def __init__(
        self, df: Any, scale: Any, cholesky_input_output_matrices: bool = False,
        validate_args: bool = False, allow_nan_stats: bool = True, name: str = "WishartCholesky",
    ) -> None:  # fmt: skip
        super().__init__(
            df, scale_tril=scale, input_output_cholesky=cholesky_input_output_matrices,
            validate_args=validate_args, allow_nan_stats=allow_nan_stats, name=name,
        )  # fmt: skip
        self._parameters = None  # the metaclass takes them as they are given here


class WishartFull(_Wishart):
    """A Wishart distribution by its scale matrix.

    Args:
        df: the degrees of freedom.
        scale: the scale matrix, symmetric and positive definite.
        cholesky_input_output_matrices: whether matrices that are taken and given are factors.
        validate_args: whether arguments are checked when it runs.
        allow_nan_stats: whether what is not defined is nan, rather than an error.
        name: a name for the operations.
    """

    def __init__(
        self, df: Any, scale: Any, cholesky_input_output_matrices: bool = False,
        validate_args: bool = False, allow_nan_stats: bool = True, name: str = "WishartFull",
    ) -> None:  # fmt: skip
        super().__init__(
            df, scale=scale, input_output_cholesky=cholesky_input_output_matrices,
            validate_args=validate_args, allow_nan_stats=allow_nan_stats, name=name,
        )  # fmt: skip
        self._parameters = None  # the metaclass takes them as they are given here


class Chi2WithAbsDf(Chi2):  # type: ignore[misc]
    """A chi-squared distribution of `floor(abs(df))` degrees of freedom.

    Args:
        df: a number, of any sign.
        validate_args: whether arguments are checked when it runs.
        allow_nan_stats: whether what is not defined is nan, rather than an error.
        name: a name for the operations.
    """

    def __init__(
        self, df: Any, validate_args: bool = False, allow_nan_stats: bool = True,
        name: str = "Chi2WithAbsDf",
    ) -> None:  # fmt: skip
        with tf.name_scope(name, values=[df]):
            whole = tf.floor(tf.abs(df, name="abs_df"), name="floor_abs_df")
        super().__init__(whole, validate_args, allow_nan_stats, name)
        self._parameters = None  # the metaclass takes them as they are given here


class InverseGammaWithSoftplusConcentrationRate(InverseGamma):  # type: ignore[misc]
    """An inverse gamma distribution whose parameters are the softplus of what is given.

    Args:
        concentration: the shape, before the softplus.
        rate: the rate, before it.
        validate_args: whether arguments are checked when it runs.
        allow_nan_stats: whether what is not defined is nan, rather than an error.
        name: a name for the operations.
    """

    def __init__(
        self, concentration: Any, rate: Any, validate_args: bool = False,
        allow_nan_stats: bool = True, name: str = "InverseGammaWithSoftplusConcentrationRate",
    ) -> None:  # fmt: skip
        with tf.name_scope(name, values=[concentration, rate]):
            shape = tf.nn.softplus(concentration, name="softplus_concentration")
            scale = tf.nn.softplus(rate, name="softplus_rate")
        super().__init__(
            shape, scale, validate_args=validate_args, allow_nan_stats=allow_nan_stats, name=name
        )
        self._parameters = None  # the metaclass takes them as they are given here


class MultivariateNormalDiagWithSoftplusScale(MultivariateNormalDiag):  # type: ignore[misc]
    """Independent normal variables whose deviations are the softplus of what is given.

    Args:
        loc: the means.
        scale_diag: the deviations, before the softplus.
        validate_args: whether arguments are checked when it runs.
        allow_nan_stats: whether what is not defined is nan, rather than an error.
        name: a name for the operations.
    """

    def __init__(
        self, loc: Any, scale_diag: Any, validate_args: bool = False,
        allow_nan_stats: bool = True, name: str = "MultivariateNormalDiagWithSoftplusScale",
    ) -> None:  # fmt: skip
        with tf.name_scope(name, values=[scale_diag]):
            deviation = tf.nn.softplus(scale_diag)
        super().__init__(
            loc, deviation, validate_args=validate_args, allow_nan_stats=allow_nan_stats, name=name
        )
        self._parameters = None  # the metaclass takes them as they are given here
