"""Graphs that TensorFlow wrote, and graphs that its own transforms made of them."""

from __future__ import annotations

import json

import numpy as np
import pytest

import opdock as tf
from opdock.transforms import transform_graph
from tests.core.transforms.graphs import ops, ran
from tests.oracle import reference

pytestmark = reference.needs_reference
EIGHT_BIT = "fold_constants quantize_weights(minimum_size=20) quantize_nodes merge_duplicate_nodes"
EXACT = (
    "add_default_attributes fold_constants merge_duplicate_nodes remove_device obfuscate_names"
    " remove_control_dependencies sort_by_execution_order strip_unused_nodes"
)


@pytest.mark.parametrize("name", ["logreg", "mlp", "convnet_bn", "mini_inception", "while_v1"])
def test_recorded_answers(name: str) -> None:
    folder = reference.FOLDER / "interop"
    about = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))["graphs"][name]
    graph_def = tf.GraphDef.FromString((folder / about["file"]).read_bytes())
    data = np.load(folder / about["data"], allow_pickle=False)
    feeds = {key: data[f"in{i}"] for i, key in enumerate(about["inputs"])}
    for transforms, slack in ((EXACT, about["atol"]), (EIGHT_BIT, 0.12)):
        after = transform_graph(graph_def, about["inputs"], about["outputs"], transforms)
        for i, output in enumerate(ran(after, about["outputs"], feeds)):
            np.testing.assert_allclose(output, data[f"out{i}"], rtol=about["rtol"], atol=slack)


def test_tensorflows_own_folding() -> None:
    folder = reference.FOLDER / "interop"
    before, theirs = (
        tf.GraphDef.FromString((folder / f"{name}.pb").read_bytes())
        for name in ("fold_in", "fold_fold_batch_norms")
    )
    about = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    ends = about["graphs"]["fold_in"]
    ours = transform_graph(before, ends["inputs"], ends["outputs"], "fold_old_batch_norms")
    # Theirs leaves constants that nobody uses.
    assert [op for op in ops(ours) if op != "Const"] == [o for o in ops(theirs) if o != "Const"]
