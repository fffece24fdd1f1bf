"""Measures inference in 8 bits as whole models, beside floats and beside other libraries.

    .venv/bin/python benchmarks/eight_bit.py [--peer tensorflow=PYTHON] [--peer onnxruntime=PYTHON]
        [--rounds 3] [--models FOLDER]

Trains convolutional and residual networks on scikit-learn's digits, freezes and folds them,
makes bytes of them with ranges from training images, and lets each library compute the graphs in a
process of its own: TensorFlow the same GraphDefs, ONNX Runtime what `opdock.onnx` makes of the
folded graph, and what its own quantizer makes of that. Prints the tables that docs/benchmarks.md
quotes; a time is the quickest batch of all rounds, which take turns. The processor's time is that
of all threads: on a busy machine it says more, but for threads that spin while they wait.
"""

from __future__ import annotations

import argparse
import functools
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
BATCH = 64
ROUNDS = 3
SECONDS = 1.0


# ---------------------------------------------------------------- what a library does
def tensorflow(path: Path) -> Callable[[np.ndarray], np.ndarray]:
    """A GraphDef in TensorFlow."""
    import tensorflow.compat.v1 as tf

    tf.disable_v2_behavior()
    return _graph(tf, path)


def opdock(path: Path) -> Callable[[np.ndarray], np.ndarray]:
    """A GraphDef in opdock."""
    import opdock as tf

    return _graph(tf, path)


def _graph(tf: Any, path: Path) -> Callable[[np.ndarray], np.ndarray]:
    graph_def = tf.GraphDef.FromString(path.read_bytes())
    with tf.Graph().as_default():
        tf.import_graph_def(graph_def, name="")
        return tf.Session().make_callable("probabilities:0", ["input:0"])


def onnxruntime(path: Path) -> Callable[[np.ndarray], np.ndarray]:
    """A model in ONNX Runtime; the one in bytes is made of the other when it is first asked for."""
    import onnxruntime as ort

    if path.stem == "bytes":
        _quantized(path.with_stem("folded"), path)
    options = ort.SessionOptions()
    options.intra_op_num_threads = 2
    session = ort.InferenceSession(str(path), options)
    return lambda x: session.run(None, {"input": x})[0]


def _quantized(source: Path, target: Path) -> None:
    """By ONNX Runtime's own quantizer, with the same images, weights by channel."""
    from onnxruntime.quantization import CalibrationDataReader, quantize_static
    from onnxruntime.quantization.shape_inference import quant_pre_process

    class Images(CalibrationDataReader):
        def __init__(self) -> None:
            self.rest = iter(np.array_split(np.load(source.parent / "train.npy")[:512], 8))

        def get_next(self) -> Any:
            found = next(self.rest, None)
            return None if found is None else {"input": found}

    ready = target.with_stem("ready")
    quant_pre_process(str(source), str(ready), skip_symbolic_shape=True)
    quantize_static(str(ready), str(target), Images(), per_channel=True)


def work(library: str, path: Path) -> None:
    """Computes the test images, then as many batches as the time allows; prints the results."""
    call = {"opdock": opdock, "tensorflow": tensorflow, "onnxruntime": onnxruntime}[library](path)
    images, labels = (np.load(path.parent / f"{n}.npy") for n in ("test", "labels"))
    batches = [images[i : i + BATCH] for i in range(0, len(images) - BATCH + 1, BATCH)]
    found = np.concatenate([call(batch) for batch in batches])
    right = float(np.mean(found.argmax(1) == labels[: len(found)]))
    # What is compiled beside the program is ready after some batches.
    warm = time.perf_counter() + SECONDS
    while time.perf_counter() < warm:
        call(batches[0])
    quickest = processor = float("inf")
    end = time.perf_counter() + SECONDS
    while time.perf_counter() < end:
        start, used = time.perf_counter(), time.process_time()
        call(batches[0])
        quickest = min(quickest, time.perf_counter() - start)
        processor = min(processor, time.process_time() - used)
    print(json.dumps({"seconds": quickest, "processor": processor, "accuracy": right}))


# ---------------------------------------------------------------- the models
def residual(training: bool, images: Any, narrowest: int = 16) -> Any:
    """Three stages of two blocks, each block two convolutions and a way around them.

    Args:
        training: whether batches are normalized by themselves.
        images: what they go over.
        narrowest: channels of the first stage; each further one has twice as many.
    """
    import opdock as tf

    def normed(x: Any, filters: int, size: int, stride: int = 1) -> Any:
        x = tf.layers.conv2d(x, filters, size, stride, padding="same", use_bias=False)
        return tf.layers.batch_normalization(x, training=training, momentum=0.9)

    x = tf.nn.relu(normed(images, narrowest, 3))
    for stage in range(3):
        filters = narrowest << stage
        for block in range(2):
            stride = 2 if stage and not block else 1
            around = x if x.shape[-1] == filters else normed(x, filters, 1, stride)
            x = normed(tf.nn.relu(normed(x, filters, 3, stride)), filters, 3)
            x = tf.nn.relu(x + around)
    return tf.layers.dense(tf.layers.flatten(tf.layers.average_pooling2d(x, 4, 4)), 10)


def plain(training: bool, images: Any) -> Any:
    """Six convolutions with usual widths, two at each size."""
    import opdock as tf

    x = images
    for filters in (64, 64, 128, 128, 256, 256):
        if x.shape[-1] == filters // 2:
            x = tf.layers.max_pooling2d(x, 2, 2)
        x = tf.layers.conv2d(x, filters, 3, padding="same", use_bias=False)
        x = tf.nn.relu(tf.layers.batch_normalization(x, training=training, momentum=0.9))
    return tf.layers.dense(tf.layers.flatten(tf.layers.max_pooling2d(x, 4, 4)), 10)


def make(folder: Path, build: Callable[..., Any] | None, side: int, epochs: int) -> None:
    """Trains a model, and leaves its graphs and images in the folder."""
    sys.path.insert(0, str(ROOT / "examples"))
    import label_digits
    from digits import bundled_digits
    from rich.console import Console

    from opdock.onnx import to_onnx, write_model
    from opdock.tools.freeze_graph import main as freeze
    from opdock.transforms import transform_graph

    data, larger = bundled_digits(), side // 8
    label_digits.SIDE = side
    label_digits.as_images = lambda rows: np.repeat(
        np.kron(rows.reshape(-1, 8, 8), np.ones((1, larger, larger)))[..., None], 3, axis=3
    ).astype(np.float32)
    if build is not None:
        label_digits.build = build
    label_digits.train(data, epochs, folder, Console(stderr=True))
    freeze([
        f"--input_graph={folder / 'graph.pb'}", "--input_binary=true",
        f"--input_checkpoint={folder / 'model'}", "--output_node_names=probabilities",
        f"--output_graph={folder / 'frozen.pb'}",
    ])  # fmt: skip
    import opdock as tf

    frozen = tf.GraphDef.FromString((folder / "frozen.pb").read_bytes())
    ends = (["input"], ["probabilities"])
    shape = f'strip_unused_nodes(type=float, shape="-1,{side},{side},3")'
    fold = label_digits.FOLD.replace('strip_unused_nodes(type=float, shape="-1,8,8,3")', shape)
    folded = transform_graph(frozen, *ends, fold)
    train = label_digits.as_images(data.train_images)
    eight = transform_graph(folded, *ends, label_digits.QUANTIZE)
    graphs = {
        "folded": folded,
        "bytes": label_digits.calibrated(eight, train[:512], folder / "ranges.log"),
        "layers": label_digits.by_layers(folded, folder / "ranges.log"),
    }
    for name, graph_def in graphs.items():
        (folder / f"{name}.pb").write_bytes(graph_def.SerializeToString())
    write_model(folder / "folded.onnx", to_onnx(folded, *ends))
    np.save(folder / "train.npy", train)
    np.save(folder / "test.npy", label_digits.as_images(data.test_images))
    np.save(folder / "labels.npy", data.test_labels)


# ---------------------------------------------------------------- tables
def measured(pythons: dict[str, str], folder: Path, rounds: int) -> list[str]:
    """The rows of one model: each library and graph, in turns."""
    rows: dict[tuple[str, str], dict[str, float]] = {}
    for _ in range(rounds):
        for library, python in pythons.items():
            kind = "onnx" if library == "onnxruntime" else "pb"
            graphs = ("frozen", "folded", "bytes", "layers")
            for graph in graphs if kind == "pb" else graphs[1:3]:
                path = folder / f"{graph}.{kind}"
                out = subprocess.run(
                    [python, __file__, "--work", library, str(path)],
                    capture_output=True, text=True, check=False,
                )  # fmt: skip
                if out.returncode:
                    print(f"{library} {graph}: {out.stderr.strip()[-300:]}", file=sys.stderr)
                    continue
                found = json.loads(out.stdout.splitlines()[-1])
                best = rows.setdefault((library, graph), found)
                for time_of in ("seconds", "processor"):
                    best[time_of] = min(best[time_of], found[time_of])
                best["size"] = path.stat().st_size
    base = rows["opdock", "folded"]
    return [
        f"| {library} | {graph} | {row['size']:,} | {row['accuracy']:.1%} | "
        f"{row['seconds'] * 1000:.2f} | {base['seconds'] / row['seconds']:.2f} | "
        f"{row['processor'] * 1000:.2f} | {base['processor'] / row['processor']:.2f} |"
        for (library, graph), row in rows.items()
    ]


def main() -> None:
    """Runs the command."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--peer", action="append", default=[], metavar="NAME=PYTHON")
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--models", type=Path, help="keeps models, or takes those there")
    parser.add_argument("--work", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.work:
        work(args.work[0], Path(args.work[1]))
        return
    pythons = {"opdock": sys.executable, **dict(peer.split("=", 1) for peer in args.peer)}
    models: dict[str, tuple[str, Callable[..., Any] | None, int, int]] = {
        "three convolutions, 8 x 8": ("conv", None, 8, args.epochs),
        "six convolutions of 64 to 256, 16 x 16": ("plain", plain, 16, -(-args.epochs // 2)),
        "residual, 15 convolutions of 16 to 64, 16 x 16": ("res", residual, 16, args.epochs),
        "residual, 15 convolutions of 64 to 256, 16 x 16": (
            "wide", functools.partial(residual, narrowest=64), 16, -(-args.epochs // 2),
        ),
    }  # fmt: skip
    for title, (name, build, side, epochs) in models.items():
        with tempfile.TemporaryDirectory() as text:
            folder = Path(args.models or text) / name
            if not (folder / "labels.npy").exists():
                folder.mkdir(parents=True, exist_ok=True)
                make(folder, build, side, epochs)
            print(
                f"| {title} | graph | bytes | right | ms a batch of {BATCH} | folded / this | "
                "processor ms | folded / this |"
            )
            print("| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |")
            print("\n".join(measured(pythons, folder, args.rounds)), flush=True)
            print()


if __name__ == "__main__":
    main()
