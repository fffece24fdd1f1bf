"""Which recorded cases opdock does not answer yet, each with a typed reason.

`planned` cases lack a name (the replay says `missing`); `bug` cases run and fail. A case listed
here that passes is an error, so the list can only shrink. Everything that is not listed must pass.
"""

from __future__ import annotations

import re
from typing import NamedTuple

# Op families replayed whole. The other families come with the issues that bring their ops.
FAMILIES = ("math", "cast", "reduce", "array", "linalg", "nn", "nn_nchw")
PLANNED_FAMILIES = {
    "image": "planned: image ops and codecs",
    "quant": "planned: int8 inference",
    "sparse": "planned: sparse ops",
    "strings": "planned: string ops",
}


class Reason(NamedTuple):
    kind: str
    why: str


# A pattern over whole case ids -> reason.
OUT_OF_SCOPE: dict[str, Reason] = {}


def reason(case: str) -> Reason | None:
    """Why a case is not expected to pass, or None."""
    hits = [r for pattern, r in OUT_OF_SCOPE.items() if re.fullmatch(pattern, case)]
    return hits[0] if hits else None
