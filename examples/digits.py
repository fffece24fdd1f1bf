"""Trains a classifier of handwritten digits: TensorFlow 1 code, as the slides of 2019 had it.

    python examples/digits.py                 # scikit-learn's 8x8 digits, bundled with it
    python examples/digits.py --mnist FOLDER  # MNIST's four IDX files, plain or .gz
    python examples/digits.py --resume        # goes on after Ctrl-C, or after a kill
    tensorboard --logdir logs/digits          # curves, histograms, images, graph, projector

Prints where each op ran and why, and last of all the accuracy on digits it never saw in training.
Each epoch ends with a checkpoint, and so does Ctrl-C; a run that was resumed ends with the weights
that it would have had anyway (to the bit with OPDOCK_JIT=sync: code rounds alike from step 1 on).
"""

from __future__ import annotations

import argparse
import gzip
import math
import os
import struct
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

import opdock as tf
from opdock.contrib.tensorboard.plugins import projector

if TYPE_CHECKING:
    from opdock.runtime.inspect.explain import Explanation

IDX_UINT8 = 0x08
MOST_BYTES = 1 << 30  # MNIST's largest file holds 47 MB: a header that promises more is broken


class Digits(NamedTuple):
    """Images as rows of floats in [0, 1], labels as integers 0 to 9."""

    train_images: np.ndarray
    train_labels: np.ndarray
    test_images: np.ndarray
    test_labels: np.ndarray


def bundled_digits() -> Digits:
    """1,797 digits of 8x8 pixels; a fifth, drawn with a fixed seed, is kept for the test."""
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    images, labels = (images / 16.0).astype(np.float32), labels.astype(np.int64)
    order = np.random.RandomState(0).permutation(len(images))
    test, train = np.split(order, [len(images) // 5])
    return Digits(images[train], labels[train], images[test], labels[test])


def read_idx(folder: Path, name: str, dimensions: int) -> np.ndarray:
    """Reads one IDX file of bytes, plain or .gz; believes its header only if the size fits."""
    path = next((p for p in (folder / name, folder / f"{name}.gz") if p.is_file()), None)
    if path is None:
        raise SystemExit(f"{folder} holds neither {name} nor {name}.gz")
    zipped = path.suffix == ".gz"
    with gzip.open(path) if zipped else path.open("rb") as file:
        length = 4 + 4 * dimensions
        header = file.read(length)
        if len(header) != length or header[:4] != bytes((0, 0, IDX_UINT8, dimensions)):
            raise SystemExit(f"{path} is no IDX file of bytes with {dimensions} dimensions")
        shape = struct.unpack(f">{dimensions}I", header[4:])
        size = math.prod(shape)
        if size > MOST_BYTES or (not zipped and os.stat(path).st_size != length + size):
            raise SystemExit(
                f"{path}: its header promises {size} bytes of shape {shape}, which it does not hold"
            )
        data = file.read(size + 1)  # one more than promised shows a file that is too long
    if len(data) != size:
        raise SystemExit(
            f"{path}: its header promises {size} bytes of shape {shape}, there are {len(data)}"
        )
    return np.frombuffer(data, np.uint8).reshape(shape)


def mnist(folder: Path) -> Digits:
    """MNIST from its four IDX files in `folder`."""

    def part(prefix: str) -> tuple[np.ndarray, np.ndarray]:
        images = read_idx(folder, f"{prefix}-images-idx3-ubyte", 3)
        labels = read_idx(folder, f"{prefix}-labels-idx1-ubyte", 1)
        if len(images) != len(labels):
            raise SystemExit(f"{folder}: {len(images)} {prefix} images, but {len(labels)} labels")
        return (images.reshape(len(images), -1) / 255.0).astype(np.float32), labels.astype(np.int64)

    return Digits(*part("train"), *part("t10k"))


class Model(NamedTuple):
    """What training needs of the graph."""

    x: tf.Tensor
    y: tf.Tensor
    last_hidden: tf.Tensor
    loss: tf.Tensor
    accuracy: tf.Tensor
    global_step: tf.Variable
    train_op: tf.Operation
    summaries: tf.Tensor
    pictures: tf.Tensor


def build(pixels: int) -> Model:
    """Step 1: the graph."""
    x = tf.placeholder(tf.float32, [None, pixels], name="x")
    y = tf.placeholder(tf.int64, [None], name="y")

    hidden = tf.layers.dense(x, 256, activation=tf.nn.relu, name="hidden1")
    hidden = tf.layers.dense(hidden, 128, activation=tf.nn.relu, name="hidden2")
    logits = tf.layers.dense(hidden, 10, name="logits")

    with tf.name_scope("loss"):
        loss = tf.reduce_mean(
            tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits)
        )
    with tf.name_scope("accuracy"):
        accuracy = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(logits, 1), y), tf.float32))

    global_step = tf.train.get_or_create_global_step()
    train_op = tf.train.AdamOptimizer(0.001).minimize(loss, global_step=global_step)

    with tf.name_scope("test"):
        tf.summary.scalar("loss", loss)
        tf.summary.scalar("accuracy", accuracy)
    for variable in tf.trainable_variables():
        tf.summary.histogram(f"weights/{variable.op.name}", variable)
    summaries = tf.summary.merge_all()
    side = math.isqrt(pixels)
    pictures = tf.summary.image("digits", tf.reshape(x, [-1, side, side, 1]), max_outputs=4)
    return Model(x, y, hidden, loss, accuracy, global_step, train_op, summaries, pictures)


class Run(NamedTuple):
    """How long to train, and where what comes of it goes."""

    epochs: int
    batch: int
    logdir: str
    resume: bool

    @property
    def prefix(self) -> str:
        """Of the checkpoints."""
        return os.path.join(self.logdir, "model")


def train(digits: Digits, run: Run) -> float:
    """Builds the graph, trains it, explains its placement; returns the test accuracy."""
    model = build(digits.train_images.shape[1])
    saver = tf.train.Saver(max_to_keep=3)
    test_feed = {model.x: digits.test_images, model.y: digits.test_labels}

    # Step 2: the session. An op without a device goes to the best that has a kernel for it.
    with (
        tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as sess,
        tf.summary.FileWriter(run.logdir, sess.graph) as writer,
    ):
        start(sess, saver, run)
        try:
            for step in steps(sess, model, digits, run):
                summary = sess.run(model.summaries, feed_dict=test_feed)
                writer.add_summary(summary, step)
                saver.save(sess, run.prefix, global_step=step)
        except KeyboardInterrupt:
            step = sess.run(model.global_step)
            saver.save(sess, run.prefix, global_step=step)
            raise SystemExit(f"stopped at step {step}; --resume goes on from there") from None
        traced = tf.RunMetadata()  # by which TensorBoard colors the graph: devices, compute time
        pictures, points, accuracy = sess.run(
            [model.pictures, model.last_hidden, model.accuracy], feed_dict=test_feed,
            options=tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE), run_metadata=traced,
        )  # fmt: skip
        step = sess.run(model.global_step)
        writer.add_run_metadata(traced, f"test at step {step}", step)
        writer.add_summary(pictures, step)
        project(writer, points, digits.test_labels)
        show(sess.explain([model.train_op, model.accuracy]))
    print(f"curves, histograms, images, graph, projector: tensorboard --logdir {run.logdir}")
    return float(accuracy)


def start(sess: tf.Session, saver: tf.train.Saver, run: Run) -> None:
    """Fills the variables: from the last checkpoint, or anew."""
    last = tf.train.latest_checkpoint(run.logdir) if run.resume else None
    if last is None:
        sess.run(tf.global_variables_initializer())
    else:
        saver.restore(sess, last)


def steps(sess: tf.Session, model: Model, digits: Digits, run: Run) -> Iterator[int]:
    """Trains from the step that the variables have reached; yields the step after each epoch."""
    each = math.ceil(len(digits.train_images) / run.batch)
    done = int(sess.run(model.global_step))
    columns = (
        TextColumn("epoch {task.fields[epoch]}"),
        BarColumn(),
        TextColumn("loss {task.fields[loss]:.4f}"),
    )
    with Progress(*columns, TimeElapsedColumn()) as progress:
        if done:
            progress.console.print(f"going on from step {done}")
        task = progress.add_task(
            "train", total=run.epochs * each, completed=done, epoch="", loss=math.nan
        )
        for epoch in range(done // each, run.epochs):
            # The order depends on the epoch alone, so that one that was left goes on in its own.
            rows = np.random.RandomState(epoch).permutation(len(digits.train_images))
            for chosen in np.array_split(rows, each)[done % each :]:
                feed = {model.x: digits.train_images[chosen], model.y: digits.train_labels[chosen]}
                _, loss = sess.run([model.train_op, model.loss], feed_dict=feed)
                done += 1
                progress.update(task, advance=1, epoch=f"{epoch + 1}/{run.epochs}", loss=loss)
            yield done


def project(writer: tf.summary.FileWriter, points: np.ndarray, labels: np.ndarray) -> None:
    """Writes what the last hidden layer makes of each digit, for TensorBoard's projector."""
    folder = Path(writer.get_logdir())
    np.savetxt(folder / "hidden2.tsv", points, fmt="%.5g", delimiter="\t")
    np.savetxt(folder / "labels.tsv", labels, fmt="%d")
    config = projector.ProjectorConfig()
    config.embeddings.add(
        tensor_name="hidden2", tensor_path="hidden2.tsv", metadata_path="labels.tsv"
    )
    projector.visualize_embeddings(writer, config)


def show(explanation: Explanation) -> None:
    """Prints where each op ran and why, one line for ops alike in type, device and kernel."""
    table = Table(box=None, pad_edge=False)
    for title in ("nodes", "op", "device", "how", "kernel", "why"):
        table.add_column(title, no_wrap=True)
    alike = Counter((r.op, r.device, r.how, r.kernel, r.why) for r in explanation.rows if r.device)
    for (op, device, how, kernel, why), nodes in sorted(alike.items()):
        place = device.rpartition("/device:")[2]
        name = kernel.partition(".<locals>")[0].rpartition(".kernels.")[2]
        table.add_row(str(nodes), op, place, how, name, why)
    print("where each op ran, and why:")
    Console(width=124).print(table)
    print(explanation.summary())


def main() -> None:
    """Reads the command line, trains, prints the accuracy last."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--mnist", type=Path, metavar="FOLDER", help="train on MNIST's IDX files in FOLDER"
    )
    parser.add_argument(
        "--epochs", type=int, help="passes over the training digits (default 30; MNIST 5)"
    )
    parser.add_argument("--batch", type=int, default=64, help="digits a step (default 64)")
    parser.add_argument(
        "--logdir", default="logs/digits",
        help="where events and checkpoints go (default logs/digits)",
    )  # fmt: skip
    parser.add_argument(
        "--resume", action="store_true", help="go on from the last checkpoint in the logdir"
    )
    args = parser.parse_args()

    digits = mnist(args.mnist) if args.mnist else bundled_digits()
    print(f"{len(digits.train_images)} digits to train on, {len(digits.test_images)} to test")
    tf.set_random_seed(2019)
    epochs = args.epochs or (5 if args.mnist else 30)
    accuracy = train(digits, Run(epochs, args.batch, args.logdir, args.resume))
    print(f"test accuracy: {100 * accuracy:.2f} %")


if __name__ == "__main__":
    main()
