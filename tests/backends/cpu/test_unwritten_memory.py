"""No kernel hands out memory that it did not write: new arrays full of NaN change no result.

What nothing writes, such as the folds of an empty batch, mostly holds zeros by chance.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import pytest

from tests.conformance import conforms

SPOILED: Final = """
import numpy as np

def spoiled(make):
    def made(*args, **kwargs):
        array = make(*args, **kwargs)
        kind = array.dtype.kind
        if kind in "fc" or array.dtype.name == "bfloat16":
            array.fill(np.nan)
        elif kind in "iu":
            array.fill(np.iinfo(array.dtype).max)
        elif kind == "b":
            array.fill(True)
        return array
    return made

np.empty, np.empty_like = spoiled(np.empty), spoiled(np.empty_like)
"""


@pytest.mark.parametrize(
    "words",
    [
        ["--op", "FusedBatchNormV2", "--op", "FusedBatchNormGradV2", "--op", "Conv2D"],
        pytest.param([], marks=pytest.mark.prove),
    ],
)
def test_results_do_not_depend_on_what_memory_held(tmp_path: Path, words: list[str]) -> None:
    (tmp_path / "sitecustomize.py").write_text(SPOILED, encoding="utf-8")
    path = os.pathsep.join(filter(None, [str(tmp_path), os.environ.get("PYTHONPATH")]))
    conforms("cpu:0", "--level", "L2", *words, env={**os.environ, "PYTHONPATH": path})
