"""Decompositions of the neural-network families give what the ops give, on every sample."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf
from opdock.graph.nodes.registry import ShapeSig, get
from opdock.testing.harness.sample import samples_for

OPS = [
    "BiasAdd", "BiasAddV1", "BiasAddGrad", "Conv3DBackpropFilter", "Conv3DBackpropInput",
    "FusedBatchNorm", "FusedBatchNormGrad", "FusedBatchNormGradV2", "FusedBatchNormGradV3",
    "FusedBatchNormV2", "FusedBatchNormV3", "L2Loss", "LeakyRelu", "LeakyReluGrad", "LogSoftmax",
    "Softmax", "SoftmaxCrossEntropyWithLogits", "SparseSoftmaxCrossEntropyWithLogits",
]  # fmt: skip


@pytest.mark.parametrize("op_type", OPS)
def test_decomposition(op_type):
    spec = get(op_type)
    for sample in samples_for(op_type, np.float32):
        with tf.Graph().as_default(), tf.Session() as session:
            tensors = [tf.constant(x) for x in sample.inputs]
            fused = spec(*tensors, **sample.attrs)
            op = (fused[0] if isinstance(fused, tuple) else fused).op
            sig = ShapeSig(
                spec, "parts", [t.raw_shape for t in op.inputs], [t.dtype for t in op.inputs],
                op.attrs, len(op.outputs),
            )  # fmt: skip
            parts = spec.decomposition_fn(sig, *op.inputs)
            parts = list(parts) if isinstance(parts, (list, tuple)) else [parts]
            assert [t.dtype for t in parts] == [t.dtype for t in op.outputs]
            got, want = session.run([parts, list(op.outputs)])
        for a, b in zip(got, want, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5, err_msg=sample.tag)
