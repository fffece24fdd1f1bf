"""Devices that compute after their kernels have returned: level L0 finds what is wrong with one."""

from __future__ import annotations

import json

import pytest

FAULTS = {
    "keeps-read-only": ("mutate-after-upload", "a repeated row that changed after upload"),
    "keeps-views": ("mutate-after-upload", "that changed after upload: the values differ"),
    "keeps-scalars": ("mutate-after-upload", "a view of one element that changed after upload"),
    "uploads-late": ("mutate-after-upload", "an array that changed after upload"),
    "downloads-early": ("results-in-flight", "results that are fetched: 16384 of 16384 elements"),
    "reuses-early": ("results-in-flight", "variables that were written: "),
    "loses-errors": ("late-errors", "CheckNumerics of values that it does not take raised nothing"),
}


def device_level(site, how):
    """Which units of L0 fail, and why."""
    command = ("-m", "opdock.cli.main", "conformance", "--device", "deferred:0", "--level", "L0")
    done = site.run(*command, "--json", "-", check=False, FIXTURE_DEFERS=how)
    cases = json.loads(done.stdout)["cases"]
    return {c["id"].removeprefix("L0/"): c["reason"] for c in cases if c["status"] == "failed"}


@pytest.mark.parametrize("how", ["", "bare-errors"])
def test_a_queue_in_order_passes(site, how):
    assert device_level(site, how) == {}


@pytest.mark.parametrize("how", FAULTS)
def test_each_fault_is_found(site, how):
    unit, reason = FAULTS[how]
    assert reason in device_level(site, how)[unit]


PROGRAM = """
import opdock as tf
x = tf.placeholder(tf.float32, [2], name="x")
with tf.device("/device:DEFERRED:0"):
    culprit = tf.check_numerics(x, "late", name="culprit")
    same = tf.identity(-tf.identity(culprit) + x, name="last")
config = tf.ConfigProto()
config.graph_options.optimizer_options.opt_level = -1
with tf.Session(config=config) as sess:
    try:
        sess.run(same, {x: [1, float("nan")]})
    except tf.errors.OpError as e:
        print(type(e).__name__, e.message)
    print(sess.run(same, {x: [1, 2]}).tolist())
"""
DEVICE = "/job:localhost/replica:0/task:0/device:DEFERRED:0"
BARE = (
    "the queued work of kernel fixture_deferred.check_numerics of plugin 'deferred' "
    f"(opdock-fixture-deferred) on {DEVICE} raised RuntimeError: code 700: late"
)


@pytest.mark.parametrize(
    ("how", "told"),
    [
        ("", "InvalidArgumentError late : Tensor had NaN values"),
        ("bare-errors", f"InternalError Op CheckNumerics failed: {BARE}"),
    ],
)
def test_the_checks_name_the_op_whose_work_failed(site, how, told):
    printed = site.run("-c", PROGRAM, FIXTURE_DEFERS=how, OPDOCK_CHECK="1").stdout
    assert printed.startswith(told)
    assert "[[node culprit (defined at " in printed
    assert "(op CheckNumerics)" in printed
    assert printed.endswith("[0.0, 0.0]\n")


@pytest.mark.parametrize("how", ["", "bare-errors"])
def test_without_them_the_error_says_that_it_may_be_an_earlier_op(site, how):
    printed = site.run("-c", PROGRAM, FIXTURE_DEFERS=how).stdout
    assert "late : Tensor had NaN values" in printed
    assert f"(in the download from {DEVICE}, behind all that was queued there: " in printed
    assert "OPDOCK_CHECK=1 tells which" in printed
    assert printed.endswith("[0.0, 0.0]\n")
