"""Distributions of both kinds together, where contrib's are a library's."""

from __future__ import annotations

from abc import ABCMeta
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import opdock as tf
from opdock.distributions.sharing import share_with


def library() -> Any:
    """A library with a class of its own for normal distributions, and none for others."""
    known: dict[Any, Any] = {}

    class Meta(ABCMeta):
        """As TensorFlow Probability's."""

    class Distribution(metaclass=Meta):
        def kl_divergence(self, other: Any, name: str = "kl_divergence") -> Any:
            for first in type(self).__mro__:
                for second in type(other).__mro__:
                    if (first, second) in known:
                        return known[first, second](self, other, name=name)
            raise NotImplementedError(type(other))

    class Normal(Distribution):
        def __init__(
            self, loc: Any, scale: Any, validate_args: bool = False, allow_nan_stats: bool = True,
            name: str = "Normal",
        ) -> None:  # fmt: skip
            self.loc, self.scale = tf.convert_to_tensor(loc), tf.convert_to_tensor(scale)
            self.name = name

    class RegisterKL:
        def __init__(self, *pair: Any) -> None:
            self.pair = pair

        def __call__(self, fn: Any) -> None:
            known[self.pair] = fn

    def normals(a: Any, b: Any, name: str) -> Any:
        ratio = tf.square(a.scale / b.scale)
        return (ratio + tf.square((a.loc - b.loc) / b.scale) - 1 - tf.log(ratio)) / 2

    RegisterKL(Normal, Normal)(normals)
    return SimpleNamespace(
        Distribution=Distribution, Normal=Normal, RegisterKL=RegisterKL,
        kl_divergence=Distribution.kl_divergence,
    )  # fmt: skip


def test_either_is_taken_where_one_is_wanted() -> None:
    theirs = library()
    share_with(theirs)
    with tf.Graph().as_default(), tf.Session() as sess:
        own, other = tf.distributions.Normal(0.0, 1.0), theirs.Normal(1.0, 2.0)
        assert isinstance(own, theirs.Normal) and isinstance(own, theirs.Distribution)
        assert not isinstance(tf.distributions.Gamma(1.0, 1.0), theirs.Normal)
        assert not isinstance(other, tf.distributions.Normal)
        for a, b in ((own, other), (other, own), (other, other), (own, own)):
            found = [tf.distributions.kl_divergence(a, b), a.kl_divergence(b)]
            locs, scales = sess.run([[a.loc, b.loc], [a.scale, b.scale]])
            ratio = (scales[0] / scales[1]) ** 2
            wanted = (ratio + ((locs[0] - locs[1]) / scales[1]) ** 2 - 1 - np.log(ratio)) / 2
            np.testing.assert_allclose(sess.run(found), [wanted] * 2, rtol=1e-6)
        with pytest.raises(NotImplementedError):
            tf.distributions.kl_divergence(tf.distributions.Gamma(1.0, 1.0), other)


def test_what_a_librarys_distribution_is_made_of_may_be_two_of_opdocks() -> None:
    theirs = library()
    share_with(theirs)
    with tf.Graph().as_default(), tf.Session() as sess:
        a, b = tf.distributions.Gamma(1.0, 1.0), tf.distributions.Gamma(2.0, 1.0)
        found, wanted = sess.run([theirs.kl_divergence(a, b), a.kl_divergence(b)])
        assert found == wanted > 0


def test_how_samples_depend_on_parameters_is_compared_by_what_it_says() -> None:
    class ReparameterizationType:
        def __repr__(self) -> str:
            return repr(tf.distributions.FULLY_REPARAMETERIZED)

    kind = tf.distributions.Normal(0.0, 1.0).reparameterization_type
    assert kind == ReparameterizationType() and hash(kind) == hash(kind)
    assert kind != tf.distributions.NOT_REPARAMETERIZED and kind != repr(kind)
