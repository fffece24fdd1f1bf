"""The workloads, one family a file, by name in the order of the tables."""

from __future__ import annotations

from typing import Final

from . import bandwidth, dispatch, norm, pipelines, quantized, recurrent, resnet, training
from .spec import Workload

FAMILIES: Final = (dispatch, bandwidth, training, norm, recurrent, resnet, quantized, pipelines)
ALL: Final[dict[str, Workload]] = {w.name: w for family in FAMILIES for w in family.WORKLOADS}
