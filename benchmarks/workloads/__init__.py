"""The workloads, one family a file, by name in the order of the tables."""

from __future__ import annotations

from workloads import (
    bandwidth,
    dispatch,
    norm,
    pipelines,
    quantized,
    recurrent,
    resnet,
    training,
)
from workloads.spec import Workload

FAMILIES = (dispatch, bandwidth, training, norm, recurrent, resnet, quantized, pipelines)
ALL: dict[str, Workload] = {w.name: w for family in FAMILIES for w in family.WORKLOADS}
