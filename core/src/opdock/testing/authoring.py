"""What the author of an op says of it to the conformance suite: samples, errors, the oracle.

A module that the hook `opdock_samples` names registers them when the suite imports it:

    import numpy as np
    from opdock.testing.authoring import ErrorSample, Sample, error_samples, reference, samples

    @samples("acme>Double")
    def double(dtype, rng):
        yield Sample([rng.normal((2, 3))])
        yield Sample([rng.normal(())], tag="scalar")

    @error_samples("acme>Double")
    def double_errors():
        yield ErrorSample([np.zeros((2, 2, 2), np.float32)], match="at most 2 dimensions")

    @reference("acme>Double")
    def double_reference(attrs, x):
        return x + x

The oracle is plain NumPy on widened inputs, and calls no kernel: nobody vouches for himself.
"""

from __future__ import annotations

from opdock.testing.harness.sample import (
    ErrorSample,
    Sample,
    Sampler,
    error_samples,
    samples,
)
from opdock.testing.reference._registry import reference

__all__ = ["ErrorSample", "Sample", "Sampler", "error_samples", "reference", "samples"]
