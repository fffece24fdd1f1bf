"""Conformance of the CUDA text, which the host's compiler runs on the stand-in.

Some ops by default and some of every family in `make prove`, since the host's compiler takes long.
OPDOCK_CUDA_OPS=all (or a list) names others.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
OPS = ["AddV2", "Cast", "Sum", "MatMul", "Conv2D", "RandomUniform", "StridedSlice", "ApplyAdam"]
MORE = (  # noqa: SIM905
    "Relu FloorMod Max BatchMatMulV2 Softmax SparseSoftmaxCrossEntropyWithLogits "
    "Conv2DBackpropInput Conv2DBackpropFilter MaxPool AvgPoolGrad FusedBatchNormV3 "
    "FusedBatchNormGradV3 RandomStandardNormal Transpose ConcatV2 PadV2 GatherV2 OneHot Tile "
    "BiasAddGrad Cholesky FFT"
).split()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("level", "ops"),
    [("L0", []), ("L1", []), ("L2", OPS), pytest.param("L2", MORE, marks=pytest.mark.prove)],
    ids=["L0", "L1", "L2", "L2-more"],
)
def test_the_claims_hold(level, ops):
    if shutil.which("g++") is None and shutil.which("c++") is None:
        pytest.skip("no C++ compiler runs the CUDA text here (apt install g++)")
    chosen = os.environ.get("OPDOCK_CUDA_OPS", "")
    if chosen and level == "L2":
        ops = [] if chosen == "all" else chosen.split()
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
