"""Data and model parallelism of the seed programs over two halves of one OpenCL device.

The halves exist only in a process that was started with OPDOCK_OPENCL_PARTS, hence the subprocess.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import numpy as np

PROGRAM = """
import json, sys
import numpy as np
import opdock as tf

first, second = sys.argv[1:]
strict = tf.ConfigProto(allow_soft_placement=False)

def data_parallel():
    a, b = (tf.constant(np.random.RandomState(s).rand(10, 4).astype("f")) for s in (1, 2))
    parts = []
    for device, x, y in zip((first, second), tf.split(a, 2), tf.split(b, 2)):
        with tf.device(device):
            parts.append(x + y)
    with tf.Session(config=strict) as sess:
        return sess.run(tf.concat(parts, axis=0)).tolist()

def towers():
    rng = np.random.RandomState(3)
    x, y = rng.rand(8, 3).astype("f"), rng.rand(8, 1).astype("f")
    with tf.device(first):
        w = tf.Variable(tf.ones([3, 1]))
    optimizer = tf.train.AdamOptimizer(0.1)
    grads = []
    for device, xs, ys in zip((first, second), np.split(x, 2), np.split(y, 2)):
        with tf.device(device):
            loss = tf.reduce_mean(tf.square(tf.matmul(tf.constant(xs), w) - ys))
            grads.append(optimizer.compute_gradients(loss, [w])[0][0])
    with tf.device(first):
        train = optimizer.apply_gradients([(tf.add_n(grads) / 2., w)])
    with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as sess:
        sess.run(tf.global_variables_initializer())
        for _ in range(5):
            sess.run(train)
        return sess.run(w).tolist()

def model_parallel():
    fc = tf.constant(np.random.RandomState(4).randn(6, 4).astype("f"))
    for device, n in ((first, 3), (second, 2)):
        with tf.device(device):
            w = tf.Variable(np.random.RandomState(n).randn(fc.shape[1].value, n).astype("f"))
            b = tf.Variable(tf.zeros([n]))
            fc = tf.nn.relu(tf.add(tf.matmul(fc, w), b))
    train = tf.train.GradientDescentOptimizer(0.1).minimize(
        tf.reduce_sum(fc * fc), colocate_gradients_with_ops=True)
    with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as sess:
        sess.run(tf.global_variables_initializer())
        for _ in range(3):
            sess.run(train)
        used = sorted({row.device for row in sess.explain(train).rows if "MatMul" in row.op} - {""})
        return sess.run(fc).tolist(), used

values, devices = model_parallel()
found = {"data": data_parallel(), "towers": towers(), "layers": values, "devices": devices}
print(json.dumps(found))
"""


def run(first: str, second: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, first, second], capture_output=True, text=True,
        env={**os.environ, "OPDOCK_OPENCL_PARTS": "2"}, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_two_devices_give_what_one_gives(opencl) -> None:
    first, second = "/device:OPENCL:0", "/device:OPENCL:1"
    apart, together = run(first, second), run(first, first)
    assert [d[-len(first) :] for d in apart["devices"]] == [first, second]
    assert len(together["devices"]) == 1
    for name in ("data", "towers", "layers"):
        np.testing.assert_allclose(apart[name], together[name], rtol=1e-5, err_msg=name)
