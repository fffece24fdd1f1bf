"""The array family's portable kernels on the strictest array namespace there is.

The device under test of the conformance suite is usually NumPy, which forgives what another
namespace would not; `array_api_strict` has nothing beyond the standard.
"""

from __future__ import annotations

import importlib

import array_api_strict as strict
import numpy as np
import pytest

import opdock as tf
from opdock import dtypes
from opdock.graph.nodes import registry
from opdock.kernels import portable
from opdock.kernels.select.arguments import flat_inputs, flat_outputs
from opdock.kernels.select.signature import NodeSig
from opdock.testing.harness.build import build_case
from opdock.testing.harness.claims import varied_attr
from opdock.testing.harness.oracle import expected_outputs, oracle_attrs, reference_value
from opdock.testing.harness.sample import samples_for
from tests.core.kernels.frozen import frozen, indexed

FAMILIES = (
    "array", "audio", "beam_search", "boosted_trees_quantiles", "boosted_trees_stats",
    "candidate_sampling", "clustering", "conv", "ctc", "decompositions", "depthwise", "diag",
    "fill", "gather", "histogram", "identity", "image_boxes", "joining", "matrix",
    "matrix_functions", "morphology", "padding", "partition", "patches", "pool", "ragged",
    "ragged_padding", "scatter", "select", "sets", "slicing", "solve", "sorting", "spacebatch",
    "sparse_math", "sparse_reduce", "splitting", "tiling", "tridiagonal", "unicode",
)  # fmt: skip
ALSO = {"RandomGammaGrad"}
"""An op that draws nothing, of a family that does."""
TYPES = (dtypes.float32, dtypes.int32, dtypes.bool, dtypes.complex64)
STATE = {"RefIdentity", "StridedSliceAssign", "ResourceStridedSliceAssign"}


def records():
    """The records of the family's kernels by op type."""
    found = {}
    for family in (*FAMILIES, "random_dist"):
        importlib.import_module(f"opdock.kernels.portable.{family}")
    for op, uses in portable._registry.items():
        for use in uses:
            family = use.bind.__module__.rpartition(".")[2]
            if (family in FAMILIES and op not in STATE) or op in ALSO:
                found[op] = use.bind, use.fields
    return found


RECORDS = records()


def claimed(spec, record):
    attr = varied_attr(spec)
    allowed = spec.definition.attrs[attr].allowed if attr else None
    named = record["dtypes"].get(attr)
    return [t for t in TYPES if (allowed is None or t in allowed) and (named is None or t in named)]


def run(op, record, function, case, xp):
    node = case.op
    flat = [v for x in case.inputs for v in (x if isinstance(x, list) else [x])]
    sig = NodeSig(
        op, node.name, node.attrs, [v.shape for v in flat], [t.dtype for t in node.inputs],
        [None] * len(node.outputs), [t.dtype for t in node.outputs],
    )  # fmt: skip
    on_host = flat_inputs(op, record.get("host_inputs", ()), node.attrs)
    args = [v if i in on_host else xp.asarray(v) for i, v in enumerate(flat)]
    outputs = function(xp, sig)(*args)
    outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    host = flat_outputs(op, record.get("host_outputs", ()), node.attrs)
    for i, value in enumerate(outputs):
        assert isinstance(value, np.ndarray) == (i in host)
    return [np.asarray(v) for v in outputs]


@pytest.mark.parametrize("op", sorted(RECORDS))
def test_it_needs_no_more_than_the_standard(op):
    """Not even arrays that can be written to."""
    check(op, frozen)


# Kernels that fill an array part by part.
WRITERS = {
    "AvgPoolGrad", "Conv2D", "Conv2DBackpropInput", "Conv3DBackpropInputV2", "Diag",
    "Dilation2DBackpropInput", "Lu", "MatrixDiagPartV2", "MatrixDiagV2", "MatrixSetDiagV2",
    "MaxPoolGrad", "MirrorPadGrad", "PadV2", "ReverseSequence", "SpaceToBatchND",
    "StridedSliceGrad",
}  # fmt: skip


@pytest.mark.parametrize("xp", [strict, indexed], ids=["writable", "indexed"])
@pytest.mark.parametrize("op", sorted(WRITERS))
def test_arrays_are_written_to_as_they_allow(op, xp):
    check(op, xp)


def rounding(wanted):
    """What sums of terms as large as the results may be off by."""
    if wanted.dtype.kind not in "fc":
        return 0
    return 1e-6 * np.max(np.abs(wanted[np.isfinite(wanted)]), initial=0)


def check(op, xp):
    function, record = RECORDS[op]
    spec = registry.get(op)
    ran = 0
    for dtype in claimed(spec, record):
        for sample in samples_for(op, dtype.np):
            with tf.Graph().as_default():
                case = build_case(
                    spec, sample.inputs, sample.attrs, attr=varied_attr(spec), dtype=dtype,
                    variant="plain", scope="", name="case",
                )  # fmt: skip
            with strict.ArrayAPIStrictFlags(api_version="2023.12"):
                got = run(op, record, function, case, xp)
            wanted = expected_outputs(
                reference_value(op, oracle_attrs(case.op.attrs), case.inputs),
                [t.dtype for t in case.op.outputs],
            )
            where = f"{dtype.name} {sample.tag}"
            for g, w in zip(got, wanted, strict=True):
                assert (g.dtype, g.shape) == (w.dtype, w.shape), where
                if not sample.shape_only:
                    rtol, atol = sample.tol or (1e-5, rounding(w))
                    np.testing.assert_allclose(g, w, rtol, atol, err_msg=where)
            ran += 1
    assert ran
