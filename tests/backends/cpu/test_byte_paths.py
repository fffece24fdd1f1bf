"""Whatever instructions a processor has for bytes, a network of bytes gives the same integers."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys

import pytest

from tests.backends.cpu.onednn import needs_onednn

pytestmark = needs_onednn

PROGRAM = """
import ctypes, json, zlib
import numpy as np
import opdock as tf
from opdock_cpu.onednn.library import find
from opdock_cpu.onednn.quantized import exact

rng = np.random.RandomState(1)
raw, ends = tf.raw_ops, (-0.5, 6.0)
def constant(*shape):
    return tf.constant(rng.randint(0, 256, shape).astype(np.uint8).view(tf.quint8.np))
def narrowed(sums, low, high):
    names = dict(zip(("input", "input_min", "input_max"), sums))
    return raw.Requantize(
        **names, requested_output_min=low, requested_output_max=high, out_type=tf.quint8)
x = tf.placeholder(tf.float32, (4, 13, 11, 24))
out = raw.QuantizeV2(input=x, min_range=ends[0], max_range=ends[1], T=tf.quint8, mode="MIN_FIRST")
for stride, inputs, outputs in ((1, 24, 32), (2, 32, 19)):
    weights = constant(3, 3, inputs, outputs)
    sums = tf.nn.quantized_conv2d(
        out[0], weights, out[1], out[2], -0.02, 0.03, [1, stride, stride, 1], "SAME")
    first = narrowed(sums, -1.0, 7.0)
    biased = raw.QuantizedBiasAdd(
        input=first[0], bias=constant(outputs), min_input=first[1], max_input=first[2],
        min_bias=-0.7, max_bias=0.9, out_type=tf.qint32)
    out = raw.QuantizedRelu(**dict(zip(
        ("features", "min_features", "max_features"), narrowed(biased, -0.5, 8.0))))
out = tf.nn.quantized_max_pool(*out, [1, 2, 2, 1], [1, 2, 2, 1], "SAME")
flat = raw.QuantizedReshape(
    tensor=out[0], shape=[4, 228], input_min=out[1], input_max=out[2])
sums = raw.QuantizedMatMul(
    a=flat[0], b=constant(228, 30), min_a=flat[1], max_a=flat[2],
    min_b=-0.02, max_b=0.03, Toutput=tf.qint32)
fetches = [sums[0], narrowed(sums, -9.0, 9.0)[0]]
feeds = {x: rng.randn(4, 13, 11, 24) * 2 + 2}
with tf.Session() as session:
    found = list(map(np.asarray, session.run(fetches, feeds)))
library = find()
used = ctypes.CDLL(library.path).dnnl_get_effective_cpu_isa()
print(json.dumps({
    "found": [zlib.crc32(v.tobytes()) for v in found], "kinds": [len(np.unique(v)) for v in found],
    "used": used, "exact": exact() == ""}))
"""
"""Prints sums of two convolutions and a product and what instructions oneDNN used."""

AVX_VNNI, AVX512, AVX512_VNNI = 0x08, 0x20, 0x40


@functools.cache
def computed(limit, code):
    """What a process finds whose oneDNN is limited, with code for a processor; "" is none."""
    unset = ("ONEDNN_MAX_CPU_ISA", "OPDOCK_JIT_CPU")
    environment = {k: v for k, v in os.environ.items() if k not in unset}
    environment["OPDOCK_JIT"] = "sync" if code else "0"
    if code and code != "this":
        environment["OPDOCK_JIT_CPU"] = code
    if limit:
        environment["ONEDNN_MAX_CPU_ISA"] = limit
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize(
    ("limit", "wanted", "exact", "code"),
    [
        ("SSE41", 0, False, "x86-64-v2"), ("AVX2", 0, False, "x86-64-v3"),
        ("AVX2_VNNI", AVX_VNNI, True, "x86-64-v3"), ("AVX512_CORE", AVX512, False, ""),
        ("AVX512_CORE_VNNI", AVX512 | AVX512_VNNI, True, ""), ("", 0, None, "this"),
    ],
)  # fmt: skip
def test_the_same_integers(limit, wanted, exact, code):
    plain = computed("SSE41", "")
    assert min(plain["kinds"]) > 20
    ours = computed(limit, code)
    if ours["used"] & wanted != wanted:
        pytest.skip(f"this processor, or its oneDNN, has no {limit}")
    assert ours["found"] == plain["found"]
    assert exact is None or ours["exact"] == exact
