"""Decompositions give what the ops give, on every sample."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf
from opdock import dtypes
from opdock.graph.nodes import registry
from opdock.graph.nodes.registry import ShapeSig
from opdock.testing.harness.sample import samples_for

FLOATING = (
    "Mean", "EuclideanNorm", "SegmentSum", "SegmentProd", "SegmentMean", "SegmentMax", "SegmentMin",
    "SparseSegmentSum", "SparseSegmentMean", "SparseSegmentSqrtN",
    "SparseSegmentSumWithNumSegments", "SparseSegmentMeanWithNumSegments",
    "SparseSegmentSqrtNWithNumSegments", "SparseSegmentMeanGrad", "SparseSegmentSqrtNGrad",
    "SparseMatMul", "BatchMatMul", "BatchMatMulV2", "Bincount", "TridiagonalMatMul",
    "SelfAdjointEig", "Einsum", "BiasAdd", "BiasAddV1", "BiasAddGrad", "Conv3DBackpropFilter",
    "Conv3DBackpropInput", "FusedBatchNorm", "FusedBatchNormGrad", "FusedBatchNormGradV2",
    "FusedBatchNormGradV3", "FusedBatchNormV2", "FusedBatchNormV3", "L2Loss", "LeakyRelu",
    "LeakyReluGrad", "LogSoftmax", "Softmax", "SoftmaxCrossEntropyWithLogits",
    "SparseSoftmaxCrossEntropyWithLogits", "SparseTensorDenseAdd", "SparseTensorDenseMatMul",
)  # fmt: skip
INTEGRAL = ("Mean", "SegmentSum", "SegmentMean", "SegmentMax", "SparseSegmentSum", "Bincount")
COMPLEX = (
    "Mean", "EuclideanNorm", "BatchMatMul", "BatchMatMulV2", "SparseTensorDenseMatMul",
    "TridiagonalMatMul",
)  # fmt: skip


def both(op, sample):
    """The op's outputs and its decomposition's, or None where the latter does not apply."""
    spec = registry.get(op)
    with tf.Graph().as_default(), tf.Session() as session:
        inputs = [
            [tf.constant(v) for v in value] if isinstance(value, list) else tf.constant(value)
            for value in sample.inputs
        ]
        attrs = {
            k: dtypes.as_dtype(v) if isinstance(v, np.dtype) else v for k, v in sample.attrs.items()
        }
        direct = spec(*inputs, **attrs)
        node = (direct if not isinstance(direct, tuple) else direct[0]).op
        flat = list(node.inputs)
        sig = ShapeSig(
            spec, op, [t.raw_shape for t in flat], [t.dtype for t in flat], node.attrs,
            len(node.outputs),
        )  # fmt: skip
        try:
            parts = spec.decomposition_fn(sig, *flat)
        except NotImplementedError:
            return None
        parts = list(parts) if isinstance(parts, (list, tuple)) else [parts]
        return session.run([list(node.outputs), parts])


CASES = (
    [(op, "float32") for op in FLOATING]
    + [(op, "int32") for op in INTEGRAL]
    + [("All", "bool"), ("Any", "bool"), ("Mean", "int8"), ("Mean", "float16")]
    + [(op, "complex64") for op in COMPLEX]
)


@pytest.mark.parametrize(("op", "dtype"), CASES)
def test_same_results(op, dtype):
    compared = 0
    for sample in samples_for(op, dtype):
        result = both(op, sample)
        if result is None or sample.shape_only:
            continue
        tolerance = 1e-2 if dtype == "float16" else 1e-4
        for direct, part in zip(*result, strict=True):
            assert part.dtype == direct.dtype and part.shape == direct.shape, sample.tag
            np.testing.assert_allclose(part, direct, rtol=tolerance, atol=1e-5, err_msg=sample.tag)
        compared += 1
    assert compared or op == "SelfAdjointEig"


def test_old_form_of_eigenvectors():
    spec, x = registry.get("SelfAdjointEig"), np.array([[2.0, 1.0], [1.0, 3.0]])
    with tf.Graph().as_default(), tf.Session() as session:
        direct = spec(tf.constant(x))
        sig = ShapeSig(spec, "e", [(2, 2)], [tf.float64], direct.op.attrs, 1)
        got, want = session.run([spec.decomposition_fn(sig, direct.op.inputs[0]), direct])
    np.testing.assert_allclose(got, want)
