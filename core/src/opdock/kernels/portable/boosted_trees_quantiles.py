"""The portable kernel of the buckets of features."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from opdock.kernels.array_api import invalid
from opdock.kernels.portable import portable
from opdock.kernels.select.signature import NodeSig


@portable("BoostedTreesBucketize")
def bucketize(xp: Any, sig: NodeSig) -> Callable[..., Any]:
    """The bucket of each value: the last takes what is beyond it as well."""

    def run(*features_and_boundaries: Any) -> Any:
        out, count = [], len(features_and_boundaries) // 2
        features, boundaries = features_and_boundaries[:count], features_and_boundaries[count:]
        for values, limits in zip(features, boundaries, strict=True):
            if len(limits.shape) != 1:
                raise invalid("Buckets should be flat vectors.")
            last = limits.shape[0] - 1
            found = xp.searchsorted(limits, values) if last >= 0 else xp.zeros_like(values)
            out.append(xp.astype(xp.clip(found, 0, max(last, 0)), xp.int32))
        return out[0] if count == 1 else tuple(out)

    return run
