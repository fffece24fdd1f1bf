"""Devices whose arrays are in other processes, and names here, which mean nothing without them."""

from __future__ import annotations

import os

import pytest

from tests.conformance import conforms, each, ops_of
from tests.plugins.conftest import Site

_EVERY = 80
"""Echo's ops, of which one in so many is asked of a distant device: each call is a message."""


@pytest.mark.slow
@pytest.mark.parametrize("device", ["distant:0", "distant:1"])
def test_names_are_as_good_as_arrays(site: Site, device: str):
    environ = os.environ | {"PYTHONPATH": str(site.path), "OPDOCK_PLUGINS": "cpu,distant"}
    every = ops_of("plugins/echo/conformance.json")[int(device[-1]) :: _EVERY]
    levels = ["L0", "L1", "L4", "L6"] if device == "distant:0" else ["L0", "L1"]
    conforms(device, *each("--level", levels), env=environ)
    linear = ["Cholesky", "FFT", "Unique", "UniqueWithCountsV2"]
    conforms(device, "--level", "L2", *each("--op", [*every, *linear]), env=environ)


PROGRAM = """
import os, signal, subprocess, sys, tempfile
import opdock as tf

folder, killed_at = sys.argv[1], int(sys.argv[2])

def workers():
    found = subprocess.run(["pgrep", "-P", str(os.getpid()), "-f", "fixture_distant.worker"],
                           capture_output=True, text=True)
    return [int(pid) for pid in found.stdout.split()]

x = tf.placeholder(tf.float32, [None, 3])
with tf.device("/device:DISTANT:0"):
    w = tf.get_variable("w", [3, 2], initializer=tf.ones_initializer())
    loss = tf.reduce_mean(tf.square(tf.sigmoid(tf.matmul(x, w)) - 0.25))
step = tf.train.get_or_create_global_step()
train = tf.train.AdamOptimizer(0.1).minimize(loss, global_step=step)
hooks = [tf.train.StopAtStepHook(12)]
feed = {x: [[1.0, 2.0, 3.0], [0.5, 0.5, 0.5]]}
with tf.train.MonitoredTrainingSession(
    checkpoint_dir=folder, save_checkpoint_steps=1, hooks=hooks
) as sess:
    while not sess.should_stop():
        _, at, now = sess.run([train, step, w], feed)
        if at == killed_at:
            killed_at = -1
            for pid in workers():
                os.kill(pid, signal.SIGKILL)
print(killed_at, now.tobytes().hex())
"""


def test_a_training_survives_its_device(site: Site, tmp_path):
    """What was made in the old process, constants of kernels too, is nothing to the new one."""
    last = {}
    for kill in (0, 7):
        done = site.run(
            "-c", PROGRAM, str(tmp_path / str(kill)), str(kill), OPDOCK_PLUGINS="cpu,distant",
            TF_DETERMINISTIC_OPS="1",
        )  # fmt: skip
        killed, last[kill] = done.stdout.split()[-2:]
        assert killed == ("0" if kill == 0 else "-1"), done.stdout
        assert ("was lost" in done.stderr) == (kill > 0), done.stderr
    assert len(set(last.values())) == 1, last
