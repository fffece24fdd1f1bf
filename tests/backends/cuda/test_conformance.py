"""Conformance of the CUDA text, which the host's compiler runs on the stand-in.

Some ops of every family by default; OPDOCK_CUDA_OPS=all (or a list) for more.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
OPS = (  # noqa: SIM905
    "AddV2 Relu FloorMod Cast Sum Max MatMul BatchMatMulV2 Softmax "
    "SparseSoftmaxCrossEntropyWithLogits Conv2D Conv2DBackpropInput Conv2DBackpropFilter MaxPool "
    "AvgPoolGrad FusedBatchNormV3 FusedBatchNormGradV3 RandomUniform RandomStandardNormal "
    "Transpose ConcatV2 StridedSlice PadV2 GatherV2 OneHot Tile BiasAddGrad ApplyAdam "
    "Cholesky FFT"
).split()


@pytest.mark.slow
@pytest.mark.parametrize("level", ["L0", "L1", "L2"])
def test_the_claims_hold(level, tmp_path):
    if shutil.which("g++") is None and shutil.which("c++") is None:
        pytest.skip("no C++ compiler runs the CUDA text here (apt install g++)")
    chosen = os.environ.get("OPDOCK_CUDA_OPS", "")
    ops = [] if chosen == "all" or level != "L2" else chosen.split() or OPS
    done = subprocess.run(
        [
            *(sys.executable, HERE / "with_standin.py", "conformance", "--device", "cuda:0"),
            *("--level", level),
            *(word for op in ops for word in ("--op", op)),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
