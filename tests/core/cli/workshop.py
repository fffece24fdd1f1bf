"""A folder in which the example of every command works."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import numpy as np
from PIL import Image

import opdock as tf
from opdock.cli import _screen
from opdock.cli._command import Command
from opdock.cli.main import main
from opdock.runtime.inspect.cases import Case

TRAIN = """
import argparse
import numpy as np
import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=2)
steps = parser.parse_args().steps
x = tf.placeholder(tf.float32, [None, 3], name="x")
w = tf.get_variable("w", [3, 1], initializer=tf.ones_initializer())
loss = tf.reduce_mean(tf.square(tf.matmul(tf.nn.dropout(x, rate=0.5), w)), name="loss")
train = tf.train.MomentumOptimizer(0.1, 0.9).minimize(loss)
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for step in range(steps):
        sess.run([train, loss], {x: np.full([4, 3], step + 1.0)})
print("trained", steps)
"""


def commands() -> Iterator[tuple[str, Command]]:
    """Every command that does something, with its full name."""
    with click.Context(main, info_name="opdock") as top:
        for name in main.list_commands(top):
            found = main.get_command(top, name)
            inner = found.commands.values() if isinstance(found, click.Group) else [found]
            for command in inner:
                assert isinstance(command, Command), f"{name}: all commands are of one kind"
                yield (f"{name} {command.name}" if len(inner) > 1 else name), command


def fill(folder: Path) -> None:
    """Writes the files that the examples name."""
    (folder / "train.py").write_text(TRAIN)
    for label, color in (("red", (255, 0, 0)), ("blue", (0, 0, 255))):
        (folder / "images" / label).mkdir(parents=True)
        Image.new("RGB", (8, 8), color).save(folder / "images" / label / "0.png")
    (folder / "labels.txt").write_text("blue\nred\n")
    with tf.python_io.TFRecordWriter(str(folder / "data.tfrecord")) as writer:
        for value in range(3):
            feature = tf.train.Feature(int64_list=tf.train.Int64List(value=[value]))
            features = tf.train.Features(feature={"value": feature})
            writer.write(tf.train.Example(features=features).SerializeToString())
    _write_model(folder)
    _write_classifier(folder)


def _write_model(folder: Path) -> None:
    with tf.Graph().as_default() as graph, tf.Session() as session:
        x = tf.placeholder(tf.float32, [None, 4], name="x")
        w = tf.get_variable("w", initializer=np.ones([4, 2], np.float32))
        y = tf.nn.relu(tf.matmul(x, w), name="y")
        session.run(tf.global_variables_initializer())
        tf.train.Saver().save(session, str(folder / "model.ckpt"))
        tf.saved_model.simple_save(session, str(folder / "model"), {"x": x}, {"y": y})
        metadata = tf.RunMetadata()
        options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
        feeds = {x: np.ones([1, 4], np.float32)}
        value = session.run(y, feeds, options=options, run_metadata=metadata)
        (folder / "run.pb").write_bytes(metadata.SerializeToString())
        frozen = tf.graph_util.convert_variables_to_constants(
            session, graph.as_graph_def(add_shapes=False), ["y"]
        )
    (folder / "graph.pb").write_bytes(frozen.SerializeToString())
    Case(frozen, {"x:0": feeds[x]}, ["y:0"], [value]).save(folder / "case.npz")


def _write_classifier(folder: Path) -> None:
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [1, 8, 8, 3], name="x")
        tf.nn.softmax(tf.reduce_mean(x, [1, 2])[:, :2], name="y")
    (folder / "classifier.pb").write_bytes(graph.as_graph_def().SerializeToString())


def run_all(lines: list[list[str]]) -> None:
    """Runs command lines one after the other, with a line of its own before each.

    No progress is shown, however slow the machine is.
    """
    _screen._PATIENCE = 3600.0
    for line in lines:
        print(f"\n=== {' '.join(line)}", flush=True)
        try:
            main(line, prog_name="opdock", standalone_mode=True)
        except SystemExit as e:
            sys.stdout.flush()
            print(f"=== ended with {e.code}", flush=True)


if __name__ == "__main__":
    import json

    os.chdir(sys.argv[1])
    run_all(json.loads(sys.argv[2]))
