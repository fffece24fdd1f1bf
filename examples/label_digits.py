"""From training to 8-bit inference, with the tools that TensorFlow 1 had for it.

    python examples/label_digits.py [--folder logs/inference] [--epochs 8]

Trains a small convolutional network on scikit-learn's handwritten digits, freezes it, rewrites it
with transforms, makes it compute in bytes whose ranges come from images of the training set,
compares the graphs, and has `opdock label-image` say what some images show.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import io
import shlex
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from digits import Digits, bundled_digits
from rich.console import Console
from rich.progress import track
from rich.table import Table

import opdock as tf
from opdock.transforms import transform_graph

SIDE = 8
BATCH = 64
INPUT, OUTPUT = "input", "probabilities"

FOLD = f"""
    add_default_attributes
    strip_unused_nodes(type=float, shape="-1,{SIDE},{SIDE},3")
    remove_nodes(op=Identity, op=CheckNumerics)
    fold_constants(ignore_errors=true)
    fold_batch_norms
    fold_old_batch_norms
"""
QUANTIZE = """
    quantize_weights(minimum_size=64)
    quantize_nodes
    strip_unused_nodes
    sort_by_execution_order
"""
LAYERS = """
    quantize_layers(min_max_log_file="{log}")
    quantize_weights
    strip_unused_nodes
    sort_by_execution_order
"""
LOG = 'insert_logging(op=RequantizationRange, show_name=true, message="__requant_min_max:")'


class Report(NamedTuple):
    """What a graph is worth."""

    name: str
    nodes: int
    size: int
    accuracy: float
    milliseconds: float


def as_images(rows: np.ndarray) -> np.ndarray:
    """Rows of grey pixels as images with three equal colors."""
    return np.repeat(rows.reshape(-1, SIDE, SIDE, 1), 3, axis=3)


def build(training: Any, images: Any) -> Any:
    """The logits of a network of three convolutions, each with a batch normalization."""
    for number, filters in enumerate((32, 64, 64)):
        images = tf.layers.conv2d(images, filters, 3, padding="same", use_bias=False)
        images = tf.nn.relu(tf.layers.batch_normalization(images, training=training, momentum=0.9))
        if number:
            images = tf.layers.max_pooling2d(images, 2, 2)
    return tf.layers.dense(tf.reshape(images, [-1, 2 * 2 * 64]), 10)


def train(data: Digits, epochs: int, folder: Path, console: Console) -> None:
    """Trains, and leaves a graph for inference and a checkpoint in the folder."""
    with tf.Graph().as_default() as graph, tf.Session() as session:
        tf.set_random_seed(1)
        images = tf.placeholder(tf.float32, [None, SIDE, SIDE, 3], name=INPUT)
        labels = tf.placeholder(tf.int64, [None], name="labels")
        logits = build(training=True, images=images)
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
        with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
            step = tf.train.AdamOptimizer(0.003).minimize(loss)
        session.run(tf.global_variables_initializer())
        pixels, order = as_images(data.train_images), np.random.RandomState(1)
        for _ in track(range(epochs), "training", console=console):
            for rows in np.array_split(order.permutation(len(pixels)), len(pixels) // BATCH):
                session.run(step, {images: pixels[rows], labels: data.train_labels[rows]})
        tf.train.Saver(tf.global_variables()).save(session, str(folder / "model"))
    with tf.Graph().as_default() as graph:
        images = tf.placeholder(tf.float32, [None, SIDE, SIDE, 3], name=INPUT)
        tf.nn.softmax(build(training=False, images=images), name=OUTPUT)
        tf.train.write_graph(graph, str(folder), "graph.pb", as_text=False)


def tool(console: Console, name: str, **flags: Any) -> str:
    """Runs one of opdock's commands; what it prints."""
    words = [f"--{flag}={value}" for flag, value in flags.items()]
    console.print(f"opdock {name.replace('_', '-')} {shlex.join(words)}", style="dim")
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        importlib.import_module(f"opdock.tools.{name}").main(words)
    return printed.getvalue().rstrip()


def calibrated(graph_def: Any, images: np.ndarray, log: Path) -> Any:
    """The same graph with the ranges that its sums have over some images."""
    logged = transform_graph(graph_def, [INPUT], [OUTPUT], LOG)
    with contextlib.redirect_stderr(io.StringIO()) as printed:
        run(logged, np.array_split(images, max(len(images) // BATCH, 1)))
    log.write_text(printed.getvalue(), encoding="utf-8")
    freeze = f'freeze_requantization_ranges(min_max_log_file="{log}")'
    return transform_graph(graph_def, [INPUT], [OUTPUT], f"{freeze} strip_unused_nodes")


def by_layers(graph_def: Any, log: Path) -> Any:
    """A folded graph in 8 bits by layers, with the ranges that `calibrated` wrote."""
    return transform_graph(graph_def, [INPUT], [OUTPUT], LAYERS.format(log=log))


def run(graph_def: Any, batches: list[np.ndarray]) -> tuple[np.ndarray, float]:
    """The probabilities, and how many milliseconds a batch took once the first was done."""
    with tf.Graph().as_default(), tf.Session() as session:
        tf.import_graph_def(graph_def, name="")
        call = session.make_callable(f"{OUTPUT}:0", [f"{INPUT}:0"])
        call(batches[0])
        start = time.perf_counter()
        found = [call(batch) for batch in batches]
        return np.concatenate(found), (time.perf_counter() - start) * 1000 / len(batches)


def report(name: str, path: Path, data: Digits) -> Report:
    """What the graph in a file is worth on digits that it never saw."""
    graph_def = tf.GraphDef.FromString(path.read_bytes())
    images = as_images(data.test_images)
    found, took = run(graph_def, np.array_split(images, max(len(images) // BATCH, 1)))
    accuracy = float(np.mean(found.argmax(1) == data.test_labels))
    return Report(name, len(graph_def.node), path.stat().st_size, accuracy, took)


def write_images(data: Digits, folder: Path, count: int) -> list[tuple[Path, int]]:
    """The first digits of the test as PNG files, each with its label."""
    found = []
    with tf.Graph().as_default(), tf.Session() as session:
        pixels = tf.placeholder(tf.uint8, [SIDE, SIDE, 3])
        png = tf.image.encode_png(pixels)
        for i, image in enumerate(as_images(data.test_images[:count])):
            path = folder / f"digit{i}.png"
            path.write_bytes(session.run(png, {pixels: np.rint(image * 255)}))
            found.append((path, int(data.test_labels[i])))
    (folder / "labels.txt").write_text("\n".join("0123456789"), encoding="utf-8")
    return found


def table(reports: list[Report]) -> Table:
    """The graphs beside one another."""
    out = Table("graph", "nodes", "bytes", "accuracy", f"ms a batch of {BATCH}")
    for r in reports:
        out.add_row(
            r.name, str(r.nodes), f"{r.size:,}", f"{r.accuracy:.1%}", f"{r.milliseconds:.2f}"
        )
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--folder", type=Path, default=Path("logs/inference"))
    parser.add_argument("--epochs", type=int, default=8)
    args = parser.parse_args()
    folder, console, data = args.folder, Console(), bundled_digits()
    folder.mkdir(parents=True, exist_ok=True)
    names = ("frozen", "folded", "8 bits", "8 bits fixed", "8-bit layers")
    paths = {name: folder / f"{name}.pb" for name in names}

    train(data, args.epochs, folder, console)
    tool(
        console, "freeze_graph", input_graph=folder / "graph.pb", input_binary="true",
        input_checkpoint=folder / "model", output_node_names=OUTPUT, output_graph=paths["frozen"],
    )  # fmt: skip
    for source, target, transforms in (("frozen", "folded", FOLD), ("folded", "8 bits", QUANTIZE)):
        told = tool(
            console, "transform_graph", in_graph=paths[source], out_graph=paths[target],
            inputs=INPUT, outputs=OUTPUT, transforms=transforms,
        )  # fmt: skip
        console.print(told, highlight=False)
    eight = tf.GraphDef.FromString(paths["8 bits"].read_bytes())
    fixed = calibrated(eight, as_images(data.train_images), folder / "ranges.log")
    paths["8 bits fixed"].write_bytes(fixed.SerializeToString())
    told = tool(
        console, "transform_graph", in_graph=paths["folded"], out_graph=paths["8-bit layers"],
        inputs=INPUT, outputs=OUTPUT, transforms=LAYERS.format(log=folder / "ranges.log"),
    )  # fmt: skip
    console.print(told, highlight=False)

    reports = [report(name, path, data) for name, path in paths.items()]
    console.print(table(reports))
    for path, label in write_images(data, folder, 3):
        console.print(f"a {label}:")
        told = tool(
            console, "label_image", image=path, graph=paths["8-bit layers"],
            labels=folder / "labels.txt", input_width=SIDE, input_height=SIDE, input_mean=0,
            input_std=255, input_layer=INPUT, output_layer=OUTPUT,
        )  # fmt: skip
        console.print(told, highlight=False)
    lost = (reports[0].accuracy - reports[-1].accuracy) * 100
    share = reports[-1].size / reports[0].size
    print(f"in bytes: accuracy {lost:.1f} points lower, {share:.0%} of the size")


if __name__ == "__main__":
    main()
