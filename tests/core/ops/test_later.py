"""Ops that TensorFlow 2 writes, in graphs that are made of 1.15's."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from PIL import Image

import opdock as tf
from opdock.ops.composed.defined_function import Defun


@pytest.fixture(autouse=True)
def _graph() -> Iterator[None]:
    with tf.Graph().as_default():
        yield


def run(fetch: Any) -> Any:
    with tf.Session() as session:
        return session.run(fetch)


def band(matrix: np.ndarray, lower: int, upper: int, align: str, padding: float) -> np.ndarray:
    """The diagonals of a matrix as TF's documentation of MatrixDiagPartV3 has them."""
    found = [np.diagonal(matrix, k) for k in range(upper, lower - 1, -1)]
    length = max(map(len, found))
    rows = []
    for k, values in zip(range(upper, lower - 1, -1), found, strict=True):
        above, below = align.split("_")
        left = (k >= 0 and above == "LEFT") or (k <= 0 and below == "LEFT")
        gap = [padding] * (length - len(values))
        rows.append([*values, *gap] if left else [*gap, *values])
    return np.array(rows, matrix.dtype)


@pytest.mark.parametrize("align", ["LEFT_RIGHT", "RIGHT_LEFT", "LEFT_LEFT", "RIGHT_RIGHT"])
@pytest.mark.parametrize("k", [(-1, 2), (-2, -1), (1, 2), (0, 0)])
def test_bands_of_diagonals(align: str, k: tuple[int, int]) -> None:
    x = np.arange(1.0, 13.0, dtype=np.float32).reshape(3, 4)
    wanted = band(x, *k, align, 9.0)
    (part, back, put) = run(
        [
            tf.raw_ops.MatrixDiagPartV3(input=[x, -x], k=k, padding_value=9.0, align=align),
            tf.raw_ops.MatrixDiagV3(
                diagonal=wanted, k=k, num_rows=3, num_cols=4, padding_value=0.0, align=align
            ),
            tf.raw_ops.MatrixSetDiagV3(
                input=np.zeros_like(x), diagonal=wanted if k[0] < k[1] else wanted[0], k=k,
                align=align,
            ),
        ]
    )  # fmt: skip
    inside = np.triu(np.tril(x, k[1]), k[0])
    np.testing.assert_array_equal(part[0], wanted if k[0] < k[1] else wanted[0])
    if k[0] < k[1]:
        np.testing.assert_array_equal(back, inside)
    np.testing.assert_array_equal(put, inside)


def test_one_diagonal_has_the_least_matrix_and_a_gradient() -> None:
    x = tf.constant([1.0, 2.0])
    y = tf.raw_ops.MatrixDiagV3(
        diagonal=x, k=1, num_rows=-1, num_cols=-1, padding_value=0.0, align="RIGHT_LEFT"
    )
    (grad,) = tf.gradients(y * y, x)
    found, grads = run([y, grad])
    np.testing.assert_array_equal(found, np.diag([1.0, 2.0], 1))
    np.testing.assert_array_equal(grads, [2.0, 4.0])


def test_counts_of_vectors_and_of_rows() -> None:
    def count(numbers: Any, weights: Any, binary: bool = False) -> Any:
        return tf.raw_ops.DenseBincount(
            input=numbers, size=4, weights=weights, binary_output=binary
        )

    none = np.zeros(0, np.float32)
    found = run(
        [
            count([1, 3, 1, 7], none),
            count([1, 3, 1, 7], [0.5, 2.0, 1.0, 9.0]),
            count([[1, 1], [0, 3]], none),
            count([[1, 1], [0, 3]], none, binary=True),
        ]
    )
    assert found[0].tolist() == [0, 2, 0, 1]
    assert found[1].tolist() == [0, 1.5, 0, 2]
    assert found[2].tolist() == [[0, 2, 0, 0], [1, 0, 0, 1]]
    assert found[3].tolist() == [[0, 1, 0, 0], [1, 0, 0, 1]]


def test_xlog1py_is_zero_where_x_is() -> None:
    x, y = tf.constant([0.0, 2.0]), tf.constant([-1.0, 1.0])
    z = tf.raw_ops.Xlog1py(x=x, y=y)
    found, grads = run([z, tf.gradients(z, [x, y])])
    np.testing.assert_allclose(found, [0.0, 2 * np.log(2.0)], rtol=1e-6)
    np.testing.assert_allclose(grads[1], [0.0, 1.0], rtol=1e-6)


def test_an_image_of_any_format() -> None:
    pixels = np.arange(24, dtype=np.uint8).reshape(4, 2, 3)
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    found = run(tf.raw_ops.DecodeImage(contents=file.getvalue(), channels=3))
    np.testing.assert_array_equal(found, pixels)


def example(**features: list[float]) -> bytes:
    made = tf.train.Example()
    for key, values in features.items():
        made.features.feature[key].float_list.value.extend(values)
    return made.SerializeToString()


def test_examples_with_features_of_all_kinds() -> None:
    def parse(serialized: Any) -> Any:
        return tf.raw_ops.ParseExampleV2(
            serialized=serialized, names=[], sparse_keys=["s"], dense_keys=["d"],
            ragged_keys=["r"], dense_defaults=[np.zeros(0, np.float32)], num_sparse=1,
            sparse_types=[tf.float32], ragged_value_types=[tf.float32],
            ragged_split_types=[tf.int32], dense_shapes=[[2]],
        )  # fmt: skip

    first = example(s=[1.0], d=[2.0, 3.0], r=[4.0, 5.0])
    many = run(parse([first, example(d=[6.0, 7.0], r=[8.0])]))
    indices, values, sizes, dense, ragged, splits = (part[0] for part in many)
    assert (indices.tolist(), values.tolist(), sizes.tolist()) == ([[0, 0]], [1.0], [2, 1])
    assert dense.tolist() == [[2.0, 3.0], [6.0, 7.0]]
    assert (ragged.tolist(), splits.tolist()) == ([4.0, 5.0, 8.0], [0, 2, 3])
    one = run(parse(first))
    assert (one[0][0].tolist(), one[2][0].tolist(), one[3][0].tolist()) == ([[0]], [1], [2.0, 3.0])


def test_a_dataset_that_maps_in_parallel() -> None:
    written = tf.Graph()
    with written.as_default():
        again = tf.data.make_initializable_iterator(
            tf.data.Dataset.range(4).map(lambda x: x * x, num_parallel_calls=2)
        )
        tf.identity(again.get_next(), name="next")
        made = written.as_graph_def()
    for node in made.node:
        if node.op == "ParallelMapDataset":
            node.op = "ParallelMapDatasetV2"
            node.attr["deterministic"].s = b"true"
            node.attr["metadata"].s = b"\n\x03map"
            del node.attr["sloppy"]
            (count,) = (n for n in made.node if n.name == node.input[-1].split(":")[0])
            count.attr["dtype"].type = tf.int64.as_datatype_enum
            count.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(2, tf.int64))
    with tf.Graph().as_default(), tf.Session() as session:
        tf.import_graph_def(made, name="")
        session.run("MakeIterator")
        assert [session.run("next:0") for _ in range(4)] == [0, 1, 4, 9]


def test_the_names_that_datasets_had_before() -> None:
    with tf.Graph().as_default() as written:
        source = tf.data.Dataset.from_tensor_slices([3, 3, 5, 3]).map(lambda x: x + 1)
        unique = source.apply(tf.data.experimental.unique())
        count = tf.data.experimental.cardinality(source)
        iterator = tf.data.make_initializable_iterator(unique)
        tf.identity(iterator.get_next(), name="next")
    made = written.as_graph_def()
    for node in made.node:
        if node.op in ("UniqueDataset", "MapDataset", "DatasetCardinality"):
            node.op = f"Experimental{node.op}"
    with tf.Graph().as_default() as graph, tf.Session() as session:
        tf.import_graph_def(made, name="")
        session.run("MakeIterator")
        assert [session.run("next:0") for _ in range(2)] == [4, 6]
        assert session.run(count.name) == 4
        again = graph.as_graph_def()
    assert "ExperimentalMapDataset" in {node.op for node in again.node}


def test_datasets_of_later_ops() -> None:
    kinds = {"output_types": [tf.int64], "output_shapes": [[]]}
    raw = tf.raw_ops
    body = Defun(tf.int64, func_name="pair")(
        lambda x: raw.RangeDataset(start=x, stop=x + 2, step=tf.constant(1, tf.int64), **kinds)
    )
    numbers = raw.RangeDataset(start=0, stop=4, step=2, **kinds)
    numbers = raw.RewriteDataset(input_dataset=numbers, rewrite_name="none", **kinds)
    several = {"other_arguments": [], "cycle_length": 1, "block_length": 2, "f": body}
    third = raw.ParallelInterleaveDatasetV3(
        input_dataset=numbers, num_parallel_calls=1, deterministic="true", **several, **kinds
    )
    fourth = raw.ParallelInterleaveDatasetV4(
        input_dataset=numbers, num_parallel_calls=1, buffer_output_elements=-1,
        prefetch_input_elements=-1, deterministic="default", **several, **kinds,
    )  # fmt: skip
    for source in (third, fourth):
        batch = raw.ParallelBatchDataset(
            input_dataset=source, batch_size=4, num_parallel_calls=2, drop_remainder=False,
            output_types=[tf.int64], output_shapes=[[None]],
        )  # fmt: skip
        told = {"output_types": [tf.int64], "output_shapes": [[None]]}
        batch = raw.OptionsDataset(input_dataset=batch, serialized_options="", **told)
        batch = raw.FinalizeDataset(input_dataset=batch, **told)
        (found,) = run(raw.DatasetToSingleElement(dataset=batch, **told))
        assert found.tolist() == [0, 1, 2, 3]
