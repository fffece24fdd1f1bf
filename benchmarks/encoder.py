"""Time to build, differentiate and compile a graph of BERT's size, beside TensorFlow's.

    python benchmarks/encoder.py                           # opdock, 16 layers, three runs
    python benchmarks/encoder.py --peer PYTHON             # and that interpreter's TensorFlow
    python benchmarks/encoder.py --layers 24 --runs 5

The graph is a transformer encoder with its embeddings, a classifier's loss and Adam with clipped
gradients, written with TF1's names alone: with 16 layers, about 10,000 ops. It is as deep as the
real model and narrow, so that the first step is the time to compile and little else.
"""

from __future__ import annotations

import argparse
import importlib
import json
import statistics
import subprocess
import sys
import time
from typing import Any

WIDTH, HEADS, WORDS, LENGTH, BATCH = 32, 4, 100, 16, 2
PHASES = ("ops", "build", "gradients", "initialize", "first step", "steady step")


def dense(tf: Any, x: Any, units: int, name: str) -> Any:
    """A dense layer with BERT's initializer."""
    with tf.variable_scope(name):
        start = tf.truncated_normal_initializer(stddev=0.02)
        kernel = tf.get_variable("kernel", [x.shape[-1], units], initializer=start)
        bias = tf.get_variable("bias", [units], initializer=tf.zeros_initializer())
        return tf.nn.bias_add(tf.matmul(x, kernel), bias)


def normalize(tf: Any, x: Any, name: str) -> Any:
    """Layer normalization over the last axis."""
    with tf.variable_scope(name):
        gamma = tf.get_variable("gamma", [WIDTH], initializer=tf.ones_initializer())
        beta = tf.get_variable("beta", [WIDTH], initializer=tf.zeros_initializer())
        mean, variance = tf.nn.moments(x, axes=[-1], keep_dims=True)
        return tf.nn.batch_normalization(x, mean, variance, beta, gamma, 1e-12)


def gelu(tf: Any, x: Any) -> Any:
    """The Gaussian error linear unit."""
    return x * 0.5 * (1.0 + tf.erf(x / 2.0**0.5))


def split_heads(tf: Any, x: Any) -> Any:
    """[batch, length, width] as [batch, heads, length, width / heads]."""
    return tf.transpose(tf.reshape(x, [BATCH, LENGTH, HEADS, WIDTH // HEADS]), [0, 2, 1, 3])


def attention(tf: Any, x: Any, rate: float) -> Any:
    """Self-attention of several heads."""
    query, key, value = (split_heads(tf, dense(tf, x, WIDTH, n)) for n in ("query", "key", "value"))
    scores = tf.matmul(query, key, transpose_b=True) * (WIDTH // HEADS) ** -0.5
    weights = tf.nn.dropout(tf.nn.softmax(scores), rate=rate)
    mixed = tf.transpose(tf.matmul(weights, value), [0, 2, 1, 3])
    return dense(tf, tf.reshape(mixed, [BATCH * LENGTH, WIDTH]), WIDTH, "output")


def encoder(tf: Any, ids: Any, layers: int, rate: float = 0.1) -> Any:
    """The encoder's last layer, [batch * length, width]."""
    table = tf.get_variable("words", [WORDS, WIDTH])
    places = tf.get_variable("places", [LENGTH, WIDTH])
    x = normalize(tf, tf.nn.embedding_lookup(table, ids) + places, "norm")
    x = tf.reshape(tf.nn.dropout(x, rate=rate), [BATCH * LENGTH, WIDTH])
    for layer in range(layers):
        with tf.variable_scope(f"layer_{layer}"):
            mixed = tf.nn.dropout(attention(tf, x, rate), rate=rate)
            x = normalize(tf, x + mixed, "attention_norm")
            inner = gelu(tf, dense(tf, x, 4 * WIDTH, "intermediate"))
            x += tf.nn.dropout(dense(tf, inner, WIDTH, "out"), rate=rate)
            x = normalize(tf, x, "out_norm")
    return x


def measure(module: str, layers: int) -> dict[str, float]:
    """Seconds of each phase, and how many ops there are."""
    tf = importlib.import_module(module)
    if hasattr(tf, "disable_v2_behavior"):
        tf.disable_v2_behavior()
    with tf.Graph().as_default() as graph, tf.Session(graph=graph) as session:
        begin = time.perf_counter()
        ids = tf.placeholder(tf.int32, [BATCH, LENGTH])
        logits = dense(tf, encoder(tf, ids, layers), 2, "logits")
        labels = tf.zeros([BATCH * LENGTH], tf.int32)
        loss = tf.reduce_mean(
            tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
        )
        built = time.perf_counter()
        variables = tf.trainable_variables()
        gradients, _ = tf.clip_by_global_norm(tf.gradients(loss, variables), 1.0)
        train = tf.train.AdamOptimizer(1e-3).apply_gradients(zip(gradients, variables, strict=True))
        differentiated = time.perf_counter()
        session.run(tf.global_variables_initializer())
        initialized = time.perf_counter()
        feed = {ids: [[(7 * i + j) % WORDS for j in range(LENGTH)] for i in range(BATCH)]}
        first_loss = session.run([train, loss], feed)[1]
        first = time.perf_counter()
        steps = []
        for _ in range(10):
            start = time.perf_counter()
            last_loss = session.run([train, loss], feed)[1]
            steps.append(time.perf_counter() - start)
        if not last_loss < first_loss:
            raise SystemExit(f"{module}: the loss went from {first_loss} to {last_loss}")
        count = len(graph.get_operations())
    ends = (built - begin, differentiated - built, initialized - differentiated)
    figures = (count, *ends, first - initialized, statistics.median(steps))
    return dict(zip(PHASES, figures, strict=True))


def alone(python: str, module: str, layers: int) -> dict[str, float]:
    """The figures of one run in a process of its own."""
    command = [python, __file__, "--layers", str(layers), "--module", module]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{module} failed:\n{done.stderr}")
    figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return figures


def main() -> None:
    """Prints the medians of the runs, a line a library."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--layers", type=int, default=16)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--peer", help="an interpreter that has TensorFlow")
    parser.add_argument("--module", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.module:
        print(json.dumps(measure(args.module, args.layers)))
        return
    sides = [("opdock", sys.executable)]
    if args.peer:
        sides.append(("tensorflow.compat.v1", args.peer))
    runs: dict[str, list[dict[str, float]]] = {module: [] for module, _ in sides}
    for _ in range(args.runs):
        for module, python in sides:
            runs[module].append(alone(python, module, args.layers))
    for module, found in runs.items():
        middle = {phase: statistics.median(run[phase] for run in found) for phase in PHASES}
        words = ", ".join(f"{phase} {middle[phase]:.3f} s" for phase in PHASES[1:])
        each = middle["first step"] / middle["ops"] * 1e6
        print(f"{module}: {middle['ops']:,.0f} ops, {words}; first step {each:.0f} µs an op")


if __name__ == "__main__":
    main()
