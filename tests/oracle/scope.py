"""Which recorded cases opdock does not answer yet, each with a typed reason.

`planned`: what the case needs is not there yet. `bug`: it is there, and wrong. `differs`:
TensorFlow gives two answers, and opdock the other one. In any case it runs and must fail, saying
what its reason says: one that passes is an error here, so the list can only shrink. Everything that
is not listed must pass.
"""

from __future__ import annotations

import re
from typing import NamedTuple

# Every family that was recorded; each is replayed whole.
FAMILIES = (
    "math",
    "cast",
    "reduce",
    "array",
    "linalg",
    "nn",
    "nn_nchw",
    "quant",
    "image",
    "sparse",
    "strings",
)


class Reason(NamedTuple):
    kind: str
    why: str
    says: str  # part of what the replay reports, so that a case fails for this reason and no other


# The wheel that was asked quantizes fed values with oneDNN, in mode MIN_FIRST up to one integer
# below what TensorFlow's own kernel gives, which it uses itself where values are constants. With
# TF_ENABLE_ONEDNN_OPTS=0 it fails the same cases.
_ONEDNN = Reason("differs", "TensorFlow's oneDNN kernels round in another way", "values differ")

# A pattern over whole case ids -> reason.
OUT_OF_SCOPE: dict[str, Reason] = {
    # ops
    r"quant/(quantize_v2|dequantize)/003": _ONEDNN,
    r"quant/nn.quantized_avg_pool/00[013]": _ONEDNN,
    r"quant/nn.quantized_(conv2d|max_pool)/00[13]": _ONEDNN,
}


def reason(case: str) -> Reason | None:
    """Why a case is not expected to pass, or None."""
    hits = [r for pattern, r in OUT_OF_SCOPE.items() if re.fullmatch(pattern, case)]
    return hits[0] if hits else None
