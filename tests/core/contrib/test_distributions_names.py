"""`tf.contrib.distributions` has TensorFlow 1.15's names, whatever its library has beside them."""

from __future__ import annotations

import pytest

from opdock.mapping import resolve


@pytest.mark.parametrize(
    ("path", "there", "newer"),
    [
        ("contrib.distributions", "MixtureSameFamily", "Empirical"),
        ("contrib.distributions.bijectors", "MaskedAutoregressiveFlow", "IteratedSigmoidCentered"),
        ("contrib.distributions.python.ops.bijectors", "Exp", "IteratedSigmoidCentered"),
    ],
)
def test_names_that_only_the_library_has_are_hidden(path, there, newer):
    assert resolve.was_there(path, there)
    assert not resolve.was_there(path, newer)
    assert resolve.internal(path, newer) is resolve.MISSING
