"""Updates of many variables in one call: what a backend that computes them is given."""

from __future__ import annotations

from typing import Final

UPDATES: Final = "opdock>Updates"
"""The op type of updates that were joined. A backend that has a kernel for it gets them.

The kernel's `NodeSig` has the attributes of the joined ops, which are equal, and `op`, their type;
`count`, how many they are; `own`, the names of the arguments of which each has its own. The inputs
are those of the op in order, with `count` in a row for each own argument. There are no results. A
kernel that finds something that it does not know how to update raises UnimplementedError before it
has changed anything: then the ops run one by one.
"""
