"""Programs to look at: a training step on several devices, and graphs of any size."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import opdock as tf
from opdock.runtime.inspect.explain import Explanation
from opdock.view.model import Row, View
from opdock.view.page import write_page
from opdock.view.trace import spans_of

BATCH = 32


def digits(device: str, **config: Any) -> Explanation:
    """A traced training step of a small classifier whose dense layer stands on a device.

    Its last layer asks for a GPU, which there may not be.
    """
    with tf.Graph().as_default():
        images = tf.placeholder(tf.float32, [BATCH, 28, 28, 1], name="images")
        labels = tf.placeholder(tf.int64, [BATCH], name="labels")
        hidden = tf.layers.conv2d(images, 16, 3, activation=tf.nn.relu, name="conv1")
        hidden = tf.layers.max_pooling2d(hidden, 2, 2, name="pool1")
        hidden = tf.layers.conv2d(hidden, 32, 3, activation=tf.nn.relu, name="conv2")
        hidden = tf.layers.max_pooling2d(hidden, 2, 2, name="pool2")
        with tf.device(device):
            hidden = tf.layers.flatten(hidden)
            hidden = tf.layers.dense(hidden, 64, activation=tf.nn.relu, name="dense")
        with tf.device("/gpu:0"):
            logits = tf.layers.dense(hidden, 10, name="logits")
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits, scope="loss")
        train = tf.train.AdamOptimizer().minimize(loss)
        feeds = {images: np.zeros((BATCH, 28, 28, 1)), labels: np.zeros(BATCH)}
        settings = tf.ConfigProto(allow_soft_placement=True, **config)
        with tf.Session(config=settings) as session:
            session.run(tf.global_variables_initializer())
            for _ in range(3):  # code is compiled beside the first
                session.run([train, loss], feeds)
            traces = [tf.RunMetadata() for _ in range(7)]
            options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
            for metadata in traces:
                session.run([train, loss], feeds, options=options, run_metadata=metadata)
            # That of the step which other work of the machine disturbed least.
            metadata = min(traces, key=lambda t: sum(s.us for s in spans_of(t.step_stats)))
            return session.explain([train, loss], feeds, metadata)


def unfused() -> dict[str, Any]:
    """The configuration of a session that fuses nothing."""
    config = tf.ConfigProto()
    config.graph_options.optimizer_options.opt_level = -1
    return {"graph_options": config.graph_options}


def blocks(nodes: int) -> View:
    """A view of so many nodes: layers of seven, ten in a scope, each with times and reasons."""
    rows: list[Row] = []
    last = "x"
    device = "/job:localhost/replica:0/task:0/device:CPU:0"

    def add(name: str, op: str, *inputs: str) -> str:
        if len(rows) < nodes:
            rows.append(Row(
                node=name, op=op, requested="", device=device, how="native", inputs=inputs,
                kernel=f"example.kernels.{op.lower()}", plugin="example", us=float(len(rows) % 97),
                why="the preferred device", outputs=("float32 [8,8]",),
                rejections=(f"example.kernels.fast_{op.lower()}: takes float16 only",),
            ))  # fmt: skip
        return name

    add("x", "Placeholder")
    while len(rows) < nodes:
        number = len(rows) // 7
        scope = f"part_{number // 100}/block_{number // 10}/layer_{number}"
        weights = add(f"{scope}/weights", "VariableV2")
        product = add(f"{scope}/product", "MatMul", last, weights)
        act = add(f"{scope}/act", "Relu", add(f"{scope}/bias", "BiasAdd", product, weights))
        soft = add(f"{scope}/soft", "Softmax", act)
        last = add(f"{scope}/sum", "AddV2", add(f"{scope}/mix", "Mul", soft, act), last)
    return View(f"{nodes} nodes", rows, steps=nodes)


def write_samples(folder: Path) -> dict[str, Path]:
    """Writes pages of the training step: by itself, and beside the same without fusions."""
    pages = {name: folder / f"{name}.html" for name in ("step", "beside")}
    found, plain = digits("/device:ECHO:0"), digits("/device:CPU:0", **unfused())
    for told in (found, plain):  # the same wherever this tree stands
        told.rows = [replace(r, line=r.line.rpartition("/")[2]) for r in told.rows]
    found.page(pages["step"], title="digits: a training step")
    write_page(str(pages["beside"]), [found.view("as compiled"), plain.view("nothing optimized")])
    return pages
