"""The event file that TensorFlow wrote, read back, and the values that its graph gives here."""

from __future__ import annotations

import io
import json
from typing import Any

import numpy as np
import pytest
from google.protobuf import json_format

import opdock as tf
from tests.oracle import reference

pytestmark = reference.needs_reference


def manifest() -> dict[str, Any]:
    folder = reference.FOLDER / "interop"
    return json.loads((folder / "manifest.json").read_text(encoding="utf-8"))


def events() -> list[tf.Event]:
    path = reference.FOLDER / "interop" / manifest()["events"]["file"]
    return list(tf.train.summary_iterator(str(path)))


def test_what_it_holds() -> None:
    found = events()
    expected = manifest()["events"]["events"]
    assert [(e.WhichOneof("what"), e.step) for e in found] == [
        (e["what"], e["step"]) for e in expected
    ]
    for event, wanted in zip(found, expected, strict=True):
        for value, about in zip(event.summary.value, wanted.get("values", ()), strict=True):
            assert value.tag == about["tag"]
            assert value.WhichOneof("value") == about["kind"]
            assert value.metadata.plugin_data.plugin_name == about["plugin"]


def pixels(value: Any) -> list[Any]:
    from PIL import Image

    return np.asarray(Image.open(io.BytesIO(value.image.encoded_image_string))).tolist()


@pytest.mark.parametrize("step", range(4))
def test_its_graph_gives_its_summaries(step: int) -> None:
    found = events()
    graph_def = tf.GraphDef.FromString(next(e.graph_def for e in found if e.HasField("graph_def")))
    theirs = next(e for e in found if e.HasField("summary") and e.step == step).summary
    weights = next(v for v in theirs.value if v.tag == "weights").histo
    with tf.Graph().as_default(), tf.Session() as sess:
        tf.import_graph_def(graph_def, name="")
        # The histogram is that of x * 2: what was fed follows from its ends.
        x = np.arange(4, dtype=np.float32) + weights.min / 2
        ours = tf.Summary.FromString(sess.run("Merge/MergeSummary:0", {"x:0": x}))
    assert [v.tag for v in ours.value] == [v.tag for v in theirs.value]
    for mine, other in zip(ours.value, theirs.value, strict=True):
        if mine.WhichOneof("value") == "image":
            assert (mine.image.height, mine.image.width, mine.image.colorspace) == (
                other.image.height,
                other.image.width,
                other.image.colorspace,
            )
            assert pixels(mine) == pixels(other)
            continue
        mine.ClearField("metadata")
        other.ClearField("metadata")
        assert json_format.MessageToDict(mine) == json_format.MessageToDict(other)


def test_records_of_examples() -> None:
    folder = reference.FOLDER / "interop"
    files = manifest()["tfrecords"]
    for name in ("examples_plain.tfrecord", "examples_gzip.tfrecord", "examples_zlib.tfrecord"):
        kind = files[name]["compression"]
        records = list(
            tf.python_io.tf_record_iterator(folder / name, tf.python_io.TFRecordOptions(kind))
        )
        assert len(records) == files[name]["records"]
        for record, wanted in zip(records, files["expected"], strict=True):
            feature = tf.train.Example.FromString(record).features.feature
            assert list(feature["id"].int64_list.value) == wanted["id"]
            assert list(feature["neg"].int64_list.value) == wanted["neg"]
            assert list(feature["var"].int64_list.value) == wanted["var"]
            assert [v.hex() for v in feature["name"].bytes_list.value] == wanted["name"]
            np.testing.assert_allclose(
                feature["score"].float_list.value, wanted["score"], rtol=1e-6
            )
    (record,) = tf.python_io.tf_record_iterator(folder / "sequence_example.tfrecord")
    example = tf.train.SequenceExample.FromString(record)
    wanted = files["sequence_example.tfrecord"]
    assert list(example.context.feature["len"].int64_list.value) == wanted["context"]["len"]
    rows = [list(f.float_list.value) for f in example.feature_lists.feature_list["f"].feature]
    assert rows == wanted["feature_lists"]["f"]
