"""Stretches: many small steps in a row, and what a backend that computes them at once is given."""

from __future__ import annotations

from typing import Final

from opdock.kernels.expr.turns import Item, Part, Product
from opdock.late import record

STRETCH: Final = "opdock>Stretch"
"""The op type of stretches of small steps. A backend that has a kernel for it gets them.

The kernel's `NodeSig` has these attributes: `stretch`, a `Stretch`, whose inputs and results are
the node's; `members`, the (name, op type) of the steps. Of two stretches in one program many stages
are alike but for the names in them, as equal layers are: what a backend writes for a stage should
serve all of these.
"""


@record(frozen=True, slots=True)
class Stretch:
    """Small steps, each of which takes about as long as a call.

    In its stages' views "x0" is the first input, "y0" the first result, "s0" the first temporary.
    Inputs, results and temporaries are apart in memory.

    Attributes:
        inputs: what there is before, none of it empty.
        results: what is left.
        temporaries: what stages compute for later ones.
        stages: what is computed, in order. What one reads has been written by then.
    """

    inputs: tuple[Item, ...]
    results: tuple[Item, ...]
    temporaries: tuple[Item, ...]
    stages: tuple[Part | Product, ...]
