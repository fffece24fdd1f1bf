"""What commands and libraries read: options, ONNX models, recordings, cases, traces, settings."""

from __future__ import annotations

import contextlib
import gzip
import importlib
import io
import json
import tempfile
import zipfile
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from random import Random
from typing import Any

import click
import numpy as np

import opdock as tf
from opdock.api.timeline import Timeline
from opdock.cli import conformance, view
from opdock.cli._graphs import Wish
from opdock.cli._traces import read_run
from opdock.contrib.learn.preprocessing import VocabularyProcessor
from opdock.contrib.training.hparam import HParams
from opdock.examples.tutorials.mnist.input_data import extract_images
from opdock.io import protos
from opdock.plugins.clusters import Packet
from opdock.runtime import watcher
from opdock.runtime.cluster import messages
from opdock.runtime.inspect.cases import Case, load_case
from opdock.runtime.inspect.recording import Recorder, load_recording
from opdock.runtime.inspect.replay import replay
from opdock.tools.saved_model_inputs import load_inputs_from_input_arg_string
from opdock.transforms import transform_graph, transform_names
from opdock.view.page import page_of
from tests.hostile.base import Format, by_message, parsed, write
from tests.hostile.mutations import NUMBERS, mutate_bytes, mutate_json


# ---------------------------------------------------------------- graphs and their transforms
def _network() -> Any:
    """A small frozen network, with what the transforms look for."""
    with tf.Graph().as_default() as graph:
        weights = np.random.RandomState(1)
        x = tf.placeholder(tf.float32, [1, 6, 6, 3], name="x")
        kernel = tf.constant(weights.randn(3, 3, 3, 4).astype(np.float32), name="kernel")
        padded = tf.pad(x, [[0, 0], [1, 1], [1, 1], [0, 0]])
        y = tf.nn.conv2d(padded, kernel, [1, 1, 1, 1], "VALID") * tf.constant([1.0, 2, 3, 4])
        y = tf.nn.relu(tf.nn.bias_add(y, tf.constant([0.1, 0.2, 0.3, 0.4])))
        y = tf.identity(tf.nn.max_pool(y, [1, 2, 2, 1], [1, 2, 2, 1], "SAME"))
        flat = tf.reshape(y, tf.stack([1, 36]))
        product = tf.matmul(flat, tf.constant(weights.randn(36, 5).astype(np.float32)))
        tf.nn.softmax(product + tf.constant(1.0), name="out")
        return graph.as_graph_def()


_OPTIONS = (
    b'strip_unused_nodes(type=float, shape="1,6,6,3") fold_constants(ignore_errors=true)',
    b"remove_nodes(op=Identity, op=CheckNumerics, max_inputs=1) round_weights(num_steps=256)",
    b"quantize_weights(minimum_size=4) quantize_nodes(input_min=-1, input_max=1)",
    b'rename_attribute(old_attribute_name="T", new_attribute_name="U", op_name="*")',
    b'set_device(device="/cpu:0", if_default=true) fold_batch_norms sort_by_execution_order',
    b"fuse_convolutions merge_duplicate_nodes obfuscate_names insert_logging(op=Relu, first_n=2)",
)


def _read_options(data: bytes, folder: Path) -> None:
    transform_graph(_network(), ["x"], ["out"], data.decode("utf-8", "replace"))


def _read_frozen(data: bytes, folder: Path) -> None:
    """By each transform alone; what it makes must be a graph that can be read."""
    graph_def = parsed(protos.GraphDef, data)
    if graph_def is None:
        return
    names = [n for n in transform_names() if n not in _ASKING]
    name = names[len(data) % len(names)]
    try:
        made = transform_graph(graph_def, ["x"], ["out"], name)
    except tf.errors.InternalError as e:  # TF's for edges from nowhere
        if "Invalid graph with inputs" in e.message:
            return
        raise
    with tf.Graph().as_default():
        tf.import_graph_def(made, name="")


_ASKING = {
    "freeze_requantization_ranges", "remove_attribute", "remove_nodes", "rename_attribute",
    "rename_op", "set_device", "sparsify_gather",
}  # fmt: skip
"""Transforms that do nothing or refuse without an option."""


def _onnx_seeds() -> Sequence[bytes]:
    onnx = importlib.import_module("opdock.onnx")
    return [onnx.to_onnx(_network(), ["x"], ["out"]).SerializeToString(deterministic=True)]


def _mutate_onnx(rng: Random, data: bytes) -> bytes:
    return by_message(importlib.import_module("onnx").ModelProto, rng, data)


def _read_onnx(data: bytes, folder: Path) -> None:
    onnx = importlib.import_module("opdock.onnx")
    made = onnx.from_onnx(onnx.read_model(write(folder, "m.onnx", data)))
    with tf.Graph().as_default():
        tf.import_graph_def(made.graph_def, name="")


# ---------------------------------------------------------------- archives of arrays
def _by_archive(rng: Random, data: bytes) -> bytes:
    """By the members three times of four, with sums made anew, else by the bytes."""
    if rng.random() < 0.25:
        return mutate_bytes(rng, data)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {info.filename: archive.read(info) for info in archive.infolist()}
    name = rng.choice(sorted(members))
    if rng.random() < 0.1:
        other = rng.choice((name + "x", rng.choice(sorted(members))))
        members[other] = members.pop(name)
    else:
        members[name] = _mutate_array(rng, name, members[name])
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", rng.choice((zipfile.ZIP_STORED,) * 3 + (8,))) as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name), content)
    return out.getvalue()


def _mutate_array(rng: Random, name: str, data: bytes) -> bytes:
    """An array's file: its head, its elements, or what they say."""
    choice = rng.random()
    if choice < 0.3:
        return mutate_bytes(rng, data)
    array = np.load(io.BytesIO(data))
    if array.dtype.kind == "S":
        return mutate_bytes(rng, data)
    if name.removesuffix(".npy") in ("recording", "case"):
        array = np.frombuffer(mutate_json(rng, array.tobytes()), np.uint8)
    elif name.startswith("graph"):
        array = np.frombuffer(by_message(protos.GraphDef, rng, array.tobytes()), np.uint8)
    elif choice < 0.6:
        array = array.astype(rng.choice(["u1", ">i4", "f2", "c8", "S3", "U2", "?", "M8[s]", "V5"]))
    else:
        array = np.resize(array, rng.choice([(), (0,), (3,), (2, 0), (1, 2, 3)]))
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


def _training(session: tf.Session) -> None:
    data = tf.data.Dataset.range(8).map(lambda i: tf.cast(i, tf.float32)).batch(2)
    x = tf.data.make_one_shot_iterator(data).get_next()
    w = tf.get_variable("w", initializer=np.ones(2, np.float32))
    names = tf.get_variable("s", initializer=tf.constant([b"a", b"bc"]))
    loss = tf.reduce_sum(tf.tanh(x * w) + tf.random_uniform([2]), name="loss")
    step = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
    session.run(tf.global_variables_initializer())
    for _ in range(2):
        session.run([loss, names, step])


def _recording_seeds() -> Sequence[bytes]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "steps.npz")
        recorder = Recorder(2, path)
        with watcher.watching(recorder), tf.Graph().as_default(), tf.Session() as session:
            _training(session)
        return [path.read_bytes()]


def _read_recording(data: bytes, folder: Path) -> None:
    recording = load_recording(write(folder, "steps.npz", data))
    for number in range(min(len(recording.steps), 3)):
        replay(recording, number, "cpu:0")


def _case_seeds() -> Sequence[bytes]:
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [2], name="x")
        v = tf.get_variable("v", initializer=1.0)
        tf.add(x, tf.assign_add(v, 1.0), name="y")
        tf.global_variables_initializer()
        graph_def = graph.as_graph_def()
    ones = np.ones(2, np.float32)
    case = Case(
        graph_def, {"x:0": ones}, ["y:0"], [ones + 2], ["init"], ["v:0"], [np.float32(2.0)],
        about={"op": "Add"},
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        return [Path(case.save(Path(folder, "case.npz"))).read_bytes()]


def _read_case(data: bytes, folder: Path) -> None:
    case = load_case(write(folder, "case.npz", data))
    case.difference(case.run("cpu:0"))


def _array_seeds() -> Sequence[bytes]:
    many, one = io.BytesIO(), io.BytesIO()
    np.savez(many, a=np.arange(6.0).reshape(2, 3), s=np.array([b"a", b"bc"]))
    np.savez_compressed(one, a=np.arange(100))
    return [many.getvalue(), one.getvalue()]


def _read_arrays(data: bytes, folder: Path) -> None:
    """As `opdock saved-model run` takes them."""
    path = write(folder, "inputs.npz", data)
    try:
        load_inputs_from_input_arg_string(f"x={path}[a]", "", "")
    except RuntimeError as e:  # TF's for a name that there is not
        if "does not contain variable" not in str(e):
            raise


# ---------------------------------------------------------------- what ran
def _run_seeds() -> Sequence[bytes]:
    metadata = tf.RunMetadata()
    options = tf.RunOptions(
        trace_level=tf.RunOptions.FULL_TRACE, output_partition_graphs=True
    )  # fmt: skip
    with tf.Graph().as_default(), tf.Session() as session:
        tf.import_graph_def(_network(), name="")
        session.run("out:0", {"x:0": np.zeros((1, 6, 6, 3))}, options, metadata)
    return [metadata.SerializeToString(deterministic=True)]


def _read_trace(data: bytes, folder: Path) -> None:
    """By the timeline and by the page."""
    path = Path(write(folder, "run.pb", data))
    run = read_run(path, None)
    if run is None:
        return
    Timeline(run.step_stats).generate_chrome_trace_format(show_memory=True)
    page_of(view.view_of_file(path, Wish((), (), None, True, False), "run", None, as_written=True))


# ---------------------------------------------------------------- clusters
def _cluster_seeds() -> Sequence[bytes]:
    told = {
        "cluster": {"ps": ["a:1"], "worker": ["b:2", "c:3"], "chief": ["d:4"]},
        "task": {"type": "worker", "index": 1},
    }
    return [json.dumps(told).encode()]


def _read_cluster(data: bytes, folder: Path) -> None:
    """As programs read TF_CONFIG."""
    try:
        told = json.loads(data)
        cluster, kind, index = told["cluster"], told["task"]["type"], told["task"]["index"]
    except (ValueError, LookupError, TypeError, RecursionError):
        return  # the program's own code
    spec = tf.train.ClusterSpec(cluster)
    spec.as_cluster_def()
    if isinstance(kind, str) and isinstance(index, int):
        spec.task_address(kind, index)
    tf.train.ClusterSpec(spec.as_cluster_def()).as_dict()


def _message_seeds() -> Sequence[bytes]:
    values = np.arange(6, dtype=np.float32).reshape(2, 3), np.array([b"a", b"bc"], object)
    message = messages.Message("run", {"part": 1, "step": [1, 2], "graph": b"abc"}, values)
    packet = messages.encode(message)
    return [b"\x00\xfe\x00".join([packet.header, *map(bytes, packet.parts)])]


def _mutate_message(rng: Random, data: bytes) -> bytes:
    header, *parts = data.split(b"\x00\xfe\x00")
    if rng.random() < 0.6:
        return b"\x00\xfe\x00".join([mutate_json(rng, header), *parts])
    return mutate_bytes(rng, data)


def _read_message(data: bytes, folder: Path) -> None:
    header, *parts = data.split(b"\x00\xfe\x00")
    messages.raised(messages.decode(Packet(header, tuple(parts))))


# ---------------------------------------------------------------- settings
def _baseline_seeds() -> Sequence[bytes]:
    return [json.dumps({"passed": ["Add/0", "Sub/1"], "ways": {"Add": "own"}}).encode()]


def _read_baseline(data: bytes, folder: Path) -> None:
    try:
        conformance._read_baseline("--baseline", Path(write(folder, "baseline.json", data)))
    except click.ClickException as e:
        raise ValueError(e.message) from None


_HPARAMS = b'{"rate": 0.1, "layers": [1, 2, 3], "name": "a", "on": true}'


def _hparams() -> HParams:
    return HParams(rate=0.1, layers=[1, 2], name="x", on=False)


def _read_hparams(data: bytes, folder: Path) -> None:
    _hparams().parse_json(data.decode("utf-8", "replace"))


def _read_assignments(data: bytes, folder: Path) -> None:
    _hparams().parse(data.decode("utf-8", "replace"))


def _vocabulary_seeds() -> Sequence[bytes]:
    words = VocabularyProcessor(4)
    words.fit(["a cat sat", "on a mat"])
    with tempfile.TemporaryDirectory() as folder:
        words.save(f"{folder}/v")
        return [Path(folder, "v").read_bytes()]


def _read_vocabulary(data: bytes, folder: Path) -> None:
    words = VocabularyProcessor.restore(write(folder, "v", data))
    if words.max_document_length < 1000:
        list(words.transform(["a cat"]))


# ---------------------------------------------------------------- saved iterators, digits
@cache
def _iterator() -> tuple[tf.Session, Any, Any, Any, Any]:
    with tf.Graph().as_default():
        data = tf.data.Dataset.range(50).shuffle(5, seed=1).batch(3).prefetch(2)
        made = tf.data.make_initializable_iterator(data)
        state = tf.placeholder(tf.variant, [])
        saved = tf.raw_ops.SerializeIterator(resource_handle=made._iterator_resource)
        restored = tf.raw_ops.DeserializeIterator(
            resource_handle=made._iterator_resource, serialized=state
        )
        return tf.Session(), made, state, saved, restored


def _iterator_seeds() -> Sequence[bytes]:
    session, made, _, saved, _ = _iterator()
    session.run(made.initializer)
    following = made.get_next()
    session.run(following)
    return [bytes(session.run(saved))]


def _read_iterator(data: bytes, folder: Path) -> None:
    session, made, state, _, restored = _iterator()
    session.run(made.initializer)
    session.run(restored, {state: data})


def _digit_seeds() -> Sequence[bytes]:
    head = np.array([2051, 2, 3, 3], ">u4").tobytes()
    return [head + bytes(range(18))]


def _mutate_digits(rng: Random, data: bytes) -> bytes:
    if rng.random() < 0.3:
        return mutate_bytes(rng, gzip.compress(data, mtime=0))
    changed = bytearray(data)
    at = rng.randrange(4)
    changed[4 * at : 4 * at + 4] = (rng.choice(NUMBERS) % 2**32).to_bytes(4, "big")
    return gzip.compress(bytes(changed) if rng.random() < 0.5 else mutate_bytes(rng, data), mtime=0)


def _read_digits(data: bytes, folder: Path) -> None:
    with (
        open(write(folder, "digits.gz", data), "rb") as file,
        contextlib.redirect_stdout(io.StringIO()),
    ):  # fmt: skip
        extract_images(file)


def _texts(*texts: bytes) -> Callable[[], Sequence[bytes]]:
    return lambda: texts


FORMATS = {
    "transforms": Format(_texts(*_OPTIONS), mutate_bytes, _read_options),
    "frozen": Format(
        lambda: [_network().SerializeToString(deterministic=True)],
        partial(by_message, protos.GraphDef), _read_frozen,
    ),
    "onnx": Format(_onnx_seeds, _mutate_onnx, _read_onnx),
    "recording": Format(_recording_seeds, _by_archive, _read_recording),
    "case": Format(_case_seeds, _by_archive, _read_case),
    "arrays": Format(_array_seeds, _by_archive, _read_arrays),
    "trace": Format(_run_seeds, partial(by_message, protos.RunMetadata), _read_trace),
    "cluster": Format(_cluster_seeds, mutate_json, _read_cluster),
    "message": Format(_message_seeds, _mutate_message, _read_message),
    "baseline": Format(_baseline_seeds, mutate_json, _read_baseline),
    "hparams": Format(_texts(_HPARAMS), mutate_json, _read_hparams),
    "assignments": Format(
        _texts(b"rate=0.5,layers=[4,5,6],name=abc,on=True"), mutate_bytes,
        _read_assignments,
    ),
    "vocabulary": Format(_vocabulary_seeds, mutate_json, _read_vocabulary),
    "iterator": Format(
        _iterator_seeds, partial(by_message, protos.VariantTensorDataProto), _read_iterator
    ),
    "digits": Format(_digit_seeds, _mutate_digits, _read_digits),
}  # fmt: skip
