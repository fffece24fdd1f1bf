"""Buffers that a program plans, and what kernels do with them: the suite gives them some."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opdock as tf
from opdock.plugin import register, unregister
from opdock.plugins.manager import get_manager
from tests.conformance import conformance, conforms, each
from tests.plugins import buffers

ENVIRON = {"OPDOCK_PLUGINS": f"cpu,{buffers.__file__}"}


@pytest.mark.parametrize("checks", ["1", "0"])
def test_a_kernel_is_tried_with_a_buffer(checks: str, tmp_path: Path) -> None:
    """With the checks, and by its results alone."""
    report = tmp_path / "report.json"
    environ = os.environ | ENVIRON | {"OPDOCK_CHECK": checks}
    words = ("--level", "L1", "--json", str(report))
    done = conformance("slipshod:0", *words, *each("--op", ["AddV2", "Mul", "Neg"]), env=environ)
    assert done.returncode == 1, done.stdout + done.stderr
    assert json.loads(report.read_text())["units"] == {
        "L1/AddV2/float32": "failed", "L1/Mul/float32": "failed", "L1/Neg/float32": "passed",
    }  # fmt: skip


def test_functions_that_take_a_buffer_by_name_alone_conform() -> None:
    words = ("--level", "L1", *each("--op", ["AddV2", "Mul", "Exp", "Relu", "Sigmoid"]))
    conforms("variadic:0", *words, env=os.environ | ENVIRON)


@pytest.fixture
def variadic() -> Any:
    register(buffers, "buffers")
    yield
    unregister("buffers")
    get_manager().close()


def test_functions_that_take_a_buffer_by_name_alone_fill_it(variadic: None) -> None:
    with tf.Graph().as_default(), tf.device("/device:VARIADIC:0"):
        x = tf.placeholder(tf.float32, [3])
        total = x * 2.0 + x
        y = tf.exp(total) - total * total
        with tf.Session() as sess:
            for scale in (1.0, -0.5):
                fed = np.array([0.5, 1.0, 1.5], np.float32) * np.float32(scale)
                wanted = np.exp(3 * fed) - 9 * fed * fed
                np.testing.assert_allclose(sess.run(y, {x: fed}), wanted, rtol=1e-5, atol=1e-5)
