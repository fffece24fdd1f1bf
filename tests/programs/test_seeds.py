"""The programs of the two tutorials opdock grew from, run as their authors wrote them.

`seeds/` holds one file a snippet: its own code, the import changed, and what the tutorial left as
`...` filled in. Not here: shell commands, and the snippet that multiplies
`weights` by a decoded JPEG: it names no weights, and no MatMul takes its dtypes.
"""

from __future__ import annotations

import contextlib
import io
import pickle
import runpy
import sys
import tarfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import opdock as tf

SEEDS = Path(__file__).with_name("seeds")
DEVICE = "/job:localhost/replica:0/task:0/device:CPU:0"
PRODUCT_LOG = [
    f"{n}: ({t}): {DEVICE}"
    for n, t in (("MatMul", "MatMul"), ("Const", "Const"), ("Const_1", "Const"))
]


class Ran(NamedTuple):
    names: dict[str, Any]
    printed: str
    graph: tf.Graph


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Runs a program in a graph and a folder of its own."""
    monkeypatch.chdir(tmp_path)
    ran = set()

    def go(
        name: str, *arguments: str, seed: int | None = None, here: str = "",
        program: Path | None = None,
    ) -> Ran:  # fmt: skip
        """`here` is a path of the program's that becomes the folder; `program` runs instead."""
        ran.add(name)
        program = program or SEEDS / f"{name}.py"
        if here:
            text = program.read_text(encoding="utf-8")
            assert here in text
            program = tmp_path / program.name
            program.write_text(text.replace(here, str(tmp_path)), encoding="utf-8")
        printed = io.StringIO()
        graph = tf.Graph()
        np.random.seed(0)
        with graph.as_default(), contextlib.redirect_stdout(printed):
            if seed is not None:
                tf.set_random_seed(seed)
            monkeypatch.setattr(sys, "argv", [name, *arguments])
            main = "__main__" if arguments else "<run_path>"
            names = runpy.run_path(str(program), run_name=main)
        return Ran(names, printed.getvalue(), graph)

    return go


def gpus() -> int:
    with tf.Graph().as_default(), tf.Session() as sess:
        return sum(d.device_type == "GPU" for d in sess.list_devices())


def variable_names(graph: tf.Graph) -> list[str]:
    return [v.op.name for v in graph.get_collection(tf.GraphKeys.GLOBAL_VARIABLES)]


# Seed 000: performance, GPU, operations and tensors, metadata


@pytest.mark.parametrize("name", ["000_matmul_placement", "000_matmul_on_cpu"])
def test_matmul_logs_its_placement(run, name: str) -> None:
    if name == "000_matmul_placement" and gpus():
        pytest.skip("the expected lines are those of a machine without a GPU")
    lines = run(name).printed.splitlines()
    assert lines[-1] == "[[26]]"
    assert lines[:-1] == PRODUCT_LOG


def test_multiple_gpus_fall_back_softly(run) -> None:
    ran = run("000_multiple_gpus")
    np.testing.assert_array_equal(ran.names["result"], [[44, 56], [98, 128]])
    assert f"AddN: (AddN): {DEVICE}" in ran.printed.splitlines()
    asked = {op.name: op.device for op in ran.graph.get_operations()}
    assert asked["MatMul"] == "/device:GPU:1"
    assert asked["MatMul_1"] == "/device:GPU:2"


def test_soft_placement(run) -> None:
    ran = run("000_soft_placement")
    assert ran.names["result"] == [[26]]
    if gpus() == 0:
        assert f"MatMul: (MatMul): {DEVICE}" in ran.printed.splitlines()


def test_without_soft_placement_a_missing_gpu_is_an_error(run) -> None:
    if gpus() > 2:
        pytest.skip("this machine has a third GPU, so the program is right")
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        run("000_no_soft_placement")
    message = str(caught.value)
    assert "Cannot assign a device for operation" in message
    assert "/device:GPU:2" in message
    assert "000_no_soft_placement.py" in message, "the message lacks the line that created the op"


def test_operations_and_tensors(run) -> None:
    ran = run("000_operations_and_tensors")
    ten, product, v = ran.names["result"]
    assert ten == 10.0
    np.testing.assert_array_equal(product, [[3.0], [7.0]])
    assert v == 0
    assert [op.type for op in ran.graph.get_operations()[:4]] == [
        "Const",
        "Const",
        "Const",
        "MatMul",
    ]


def test_metadata_of_a_session(run) -> None:
    ran = run("000_session_metadata")
    metadata = ran.names["metadata"]
    assert "MatMul" in {node.op for graph in metadata.partition_graphs for node in graph.node}
    timings = [node for device in metadata.step_stats.dev_stats for node in device.node_stats]
    assert "MatMul" in {node.node_name for node in timings}
    assert all(node.all_end_rel_micros >= 0 and node.all_start_micros > 0 for node in timings)
    assert "node_stats" in ran.printed
    assert 'op: "MatMul"' in ran.printed


# Seed 002: images of CIFAR-10 as TFRecords, in Python 3's words


def test_cifar_to_tfrecord(run, tmp_path: Path) -> None:
    folder = tmp_path / "cifar-10-batches-py"
    folder.mkdir()
    rng = np.random.default_rng(0)
    batches = {}
    for name in [*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"]:
        data = rng.integers(0, 256, (4, 3072), np.uint8)
        batches[name] = {"data": data, "labels": rng.integers(0, 10, 4).tolist()}
        (folder / name).write_bytes(pickle.dumps(batches[name]))
    with tarfile.open(tmp_path / "cifar-10-python.tar.gz", "w:gz") as archive:
        archive.add(folder, folder.name)
    ran = run("002_cifar_to_tfrecord", "--data-dir", str(tmp_path))
    assert ran.printed.splitlines()[-1] == "Done!"
    for mode, files in ran.names["_get_file_names"]().items():
        wanted = [
            (image.tobytes(), label)
            for f in files
            for image, label in zip(batches[f]["data"], batches[f]["labels"], strict=True)
        ]
        found = []
        for record in tf.python_io.tf_record_iterator(str(tmp_path / f"{mode}.tfrecords")):
            feature = tf.train.Example.FromString(record).features.feature
            image, label = feature["image"].bytes_list.value, feature["label"].int64_list.value
            found.append((image[0], label[0]))
        assert found == wanted


# Seed 003: introduction, slides of 2019


def test_tensor(run) -> None:
    assert run("003_tensor").names["my_image"].shape.as_list() == [10, 224, 224, 3]


def test_placeholder_with_its_feed(run) -> None:
    assert run("003_placeholder").names["result"] == 3.0


def test_eval_without_feed(run) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        run("003_eval_without_feed")
    message = str(caught.value)
    assert "You must feed a value for placeholder tensor 'Placeholder' with dtype float" in message
    assert "003_eval_without_feed.py" in message


def test_variables(run) -> None:
    ran = run("003_variables")
    cons, matrix = ran.names["result"]
    assert cons == 3
    np.testing.assert_array_equal(matrix, [[1, 2], [3, 4]])
    assert variable_names(ran.graph) == ["scalar", "matrix"]


def test_a_variable_exists(run) -> None:
    with pytest.raises(ValueError, match="Variable weights already exists, disallowed") as caught:
        run("003_variable_exists")
    assert "003_variable_exists.py" in str(caught.value), (
        "TF says where the variable was first made"
    )


@pytest.mark.parametrize("way", [1, 2])
def test_sharing_variables(run, way: int) -> None:
    ran = run(f"003_sharing_way_{way}")
    one, two = ran.names["result"]
    assert one.shape == (1, 10, 10, 32)
    assert two.shape == (1, 20, 20, 32)
    scopes = [f"model/conv{i}/{v}" for i in (1, 2) for v in ("weights", "biases")]
    assert variable_names(ran.graph) == scopes


def test_optimizer_direct(run) -> None:
    np.testing.assert_allclose(run("003_optimizer_direct").names["result"], [0.8, -1.6], rtol=1e-6)


def test_optimizer_with_clipped_gradients(run) -> None:
    np.testing.assert_allclose(run("003_optimizer_clipped").names["result"], [0.8, -1.7], rtol=1e-6)


def test_other_optimizers(run) -> None:
    for name, (before, after) in run("003_other_optimizers").names["result"].items():
        assert before == 5.0
        assert after < before, name


def test_logistic_regression(run) -> None:
    ran = run("003_logistic_regression", seed=1)
    losses = ran.names["losses"]
    assert len(losses) == 200
    assert losses[-1] < losses[0]
    (grad_w,), (grad_b,) = ran.names["gradients"]
    x, y = ran.names["x_input"], ran.names["y_true"]
    with ran.graph.as_default():
        w = ran.names["sess"].run("W:0")
    assert w.shape == grad_w.shape == (5, 1)
    assert grad_b.shape == (1, 1)
    # grad_b = mean(sigmoid(logits) - y), grad_W = x^T (sigmoid(logits) - y) / n: the two agree.
    residual = np.linalg.lstsq(x.T / 3.0, grad_w, rcond=None)[0]
    np.testing.assert_allclose(residual.mean(), grad_b[0, 0], atol=1e-5)
    assert np.all(np.abs(residual + y - 0.5) <= 0.5 + 1e-5)
    assert ran.names["pred_logits"].op.name == "Wx_plus_b/add"
    types = {op.name: op.type for op in ran.graph.get_operations()}
    assert types["W"] == "VariableV2"
    assert types["Wx_plus_b/MatMul"] == "MatMul"
    assert types["gradients/Wx_plus_b/MatMul_grad/MatMul_1"] == "MatMul"
    assert any(name.startswith("gradients_1/") for name in types), (
        "the second tf.gradients has its own scope"
    )


def test_use_gpu_without_one_is_an_error(run) -> None:
    if gpus():
        assert "[[13. 16.]" in run("003_use_gpu").printed
        return
    with pytest.raises(
        tf.errors.InvalidArgumentError, match="Cannot assign a device for operation MatMul"
    ):
        run("003_use_gpu")


def test_memory_growth(run) -> None:
    ran = run("003_memory_growth")
    np.testing.assert_array_equal(ran.names["result"], [[13, 16], [29, 36]])
    assert ran.names["config"].gpu_options.allow_growth is True


def test_a_single_gpu_of_many(run) -> None:
    if gpus() > 2:
        assert "[[22. 28.]" in run("003_single_gpu_of_many").printed
        return
    with pytest.raises(tf.errors.InvalidArgumentError, match="/device:GPU:2"):
        run("003_single_gpu_of_many")


def test_data_parallelism(run) -> None:
    ran = run("003_data_parallelism")
    assert ran.names["c_value"].shape == (1000, 100)
    np.testing.assert_array_equal(ran.names["a_value"] + ran.names["b_value"], ran.names["c_value"])
    assert [t.device for t in ran.names["split_c"]] == ["/device:GPU:0", "/device:GPU:1"]


def test_model_parallelism(run) -> None:
    ran = run("003_model_parallelism")
    np.testing.assert_array_equal(ran.names["result"], [[31, 31], [1, 1]])
    asked = {v.op.name: v.device for v in ran.graph.get_collection(tf.GraphKeys.GLOBAL_VARIABLES)}
    assert list(asked.values()) == ["/device:GPU:0"] * 2 + ["/device:GPU:1"] * 2


def events(folder: str) -> list[Any]:
    (path,) = Path(folder).glob("events.out.tfevents.*")
    return list(tf.train.summary_iterator(str(path)))


def test_tensorboard(run) -> None:
    run("003_tensorboard")
    written = events("logs")
    assert [e.WhichOneof("what") for e in written[:3]] == [
        "file_version",
        "graph_def",
        "meta_graph_def",
    ]
    scalars = [(e.step, v.tag) for e in written for v in e.summary.value]
    assert scalars == [(i, "loss/loss") for i in range(5)]
    graph = tf.GraphDef.FromString(written[1].graph_def)
    assert "Wx_plus_b/MatMul" in {node.name for node in graph.node}


def test_the_example_of_the_last_slides(run) -> None:
    ran = run("003_example_with_summaries", seed=3)
    assert ran.names["result"] > 0.85
    tags = {v.tag for e in events("logs/train") for v in e.summary.value}
    shown = (
        "layer1/Wx_plus_b/pre_activations",
        "layer1/activations",
        "layer1/biases/summaries/histogram",
        "layer1/weights/summaries/histogram",
        "accuracy_1",
        "cross_entropy_1",
    )
    assert tags.issuperset(shown)


SUPERVISED = "/tmp/tensorflow/supervisor"


def test_a_supervisor_trains(run, tmp_path: Path) -> None:
    ran = run("000_supervisor", here=SUPERVISED)
    assert ran.printed.startswith("W: [1.9999")
    assert tf.train.latest_checkpoint(str(tmp_path)) is not None
    tags = [v.tag for e in events(str(tmp_path)) for v in e.summary.value]
    assert tags.count("loss") == 10


def test_a_supervisor_starts_from_weights_of_before(run) -> None:
    with tf.Graph().as_default(), tf.Session() as sess:
        before = [tf.Variable([3.0], name="Variable"), tf.Variable([4.0], name="Variable_1")]
        sess.run(tf.global_variables_initializer())
        tf.train.Saver(before).save(sess, "logdir", write_state=False)
    ran = run("000_supervisor_pretrained", here=SUPERVISED)
    assert ran.printed.startswith("W: [1.9999")


OPENCL = "/device:OPENCL:0"
SOFTLY = "config=tf.ConfigProto(allow_soft_placement=True, log_device_placement=True)"


@pytest.mark.parametrize(
    ("name", "opened"),
    [
        ("000_supervisor", "managed_session("),
        ("003_logistic_regression", "Session("),
        ("003_optimizer_direct", "Session("),
        pytest.param(  # a thousand steps, which another test takes on the CPU
            "003_example_with_summaries", "InteractiveSession(", marks=pytest.mark.prove
        ),
    ],
)
def test_training_completes_on_opencl(run, tmp_path: Path, name: str, opened: str) -> None:
    """The program in a device's scope; what has no kernel there is placed softly."""
    with tf.Session() as session:
        if not any(d.name.endswith(OPENCL) for d in session.list_devices()):
            pytest.skip("no OpenCL device (for a CPU: apt install pocl-opencl-icd)")
    text = (SEEDS / f"{name}.py").read_text(encoding="utf-8")
    assert opened in text
    text = text.replace(opened, opened + SOFTLY).replace(SUPERVISED, str(tmp_path))
    lines = "".join(f"    {line}\n" for line in text.splitlines())
    program = tmp_path / f"{name}.py"
    program.write_text(f"import opdock as tf\nwith tf.device('{OPENCL}'):\n{lines}", "utf-8")
    ran = run(name, seed=3, program=program)
    placed = [line for line in ran.printed.splitlines() if line.endswith(OPENCL)]
    assert any("MatMul" in line or "mul" in line for line in placed), ran.printed
    if name == "000_supervisor":
        assert "W: [1.99" in ran.printed
        assert tf.train.latest_checkpoint(str(tmp_path)) is not None
    if name == "003_logistic_regression":
        assert ran.names["losses"][-1] < ran.names["losses"][0]
    if name == "003_example_with_summaries":
        assert ran.names["result"] > 0.85


def test_every_program_has_a_test() -> None:
    said = Path(__file__).read_text(encoding="utf-8").replace("{way}", "1") + "003_sharing_way_2"
    assert not [p.stem for p in SEEDS.glob("*.py") if p.stem not in said]
