"""Inference on several threads of one process, each step on one thread: how steps a second grow.

    python benchmarks/side_by_side.py --peer tensorflow=PYTHON --peer onnxruntime=PYTHON

Every thread has a session of its own that computes on one thread. Each library runs in the Python
that has it, in turns: TensorFlow the graph that opdock has built and frozen, ONNX Runtime what
`opdock convert` makes of it. `--write` puts the table into a page.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

Step = Callable[[], Any]
INPUTS = {"mlp": (32, 784), "resnet": (8, 16, 16, 32)}
"""The programs, and what each takes."""


# ---------------------------------------------------------------- programs
def mlp(tf: Any, x: Any) -> Any:
    """Three layers over a batch of 32."""
    for units in (512, 512, 10):
        x = tf.layers.dense(x, units, activation=tf.nn.relu)
    return x


def resnet(tf: Any, x: Any) -> Any:
    """Four residual blocks over eight small images."""
    for _ in range(4):
        short = x
        for _ in range(2):
            x = tf.layers.conv2d(x, 32, 3, padding="same", use_bias=False)
            x = tf.nn.relu(tf.layers.batch_normalization(x))
        x += short
    return tf.reduce_mean(x, [1, 2])


def written(folder: Path) -> None:
    """Writes both programs with their weights, for TensorFlow and for ONNX Runtime."""
    import opdock as tf
    from opdock.onnx import to_onnx

    for make in (mlp, resnet):
        name = make.__name__
        with tf.Graph().as_default() as graph, tf.Session() as session:
            tf.set_random_seed(1)
            y = tf.identity(make(tf, tf.placeholder(tf.float32, INPUTS[name], "x")), "y")
            session.run(tf.global_variables_initializer())
            frozen = tf.graph_util.convert_variables_to_constants(
                session, graph.as_graph_def(), [y.op.name]
            )
        (folder / f"{name}.pb").write_bytes(frozen.SerializeToString())
        model = to_onnx(frozen, ["x"], ["y"])
        (folder / f"{name}.onnx").write_bytes(model.SerializeToString())


# ---------------------------------------------------------------- libraries
def graph_step(tf: Any, folder: Path, name: str) -> Step:
    """A session over the written graph."""
    with tf.Graph().as_default() as graph:
        frozen = tf.GraphDef.FromString((folder / f"{name}.pb").read_bytes())
        x, y = tf.import_graph_def(frozen, return_elements=["x:0", "y:0"], name="")
    config = tf.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
    session = tf.Session(graph=graph, config=config)
    feed = {x: np.ones(INPUTS[name], np.float32)}
    return lambda: session.run(y, feed)


def opdock(folder: Path, name: str) -> Step:
    """On opdock."""
    import opdock as tf

    return graph_step(tf, folder, name)


def tensorflow(folder: Path, name: str) -> Step:
    """On TensorFlow."""
    import tensorflow.compat.v1 as tf

    return graph_step(tf, folder, name)


def onnxruntime(folder: Path, name: str) -> Step:
    """On ONNX Runtime's CPU provider."""
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = ort.InferenceSession(
        str(folder / f"{name}.onnx"), options, providers=["CPUExecutionProvider"]
    )
    feed = {session.get_inputs()[0].name: np.ones(INPUTS[name], np.float32)}
    return lambda: session.run(None, feed)


LIBRARIES = {f.__name__: f for f in (opdock, tensorflow, onnxruntime)}


def rate(steps: list[Step], seconds: float) -> float:
    """Steps a second of so many threads together."""
    counts, end = [0] * len(steps), threading.Event()

    def work(i: int) -> None:
        while not end.is_set():
            steps[i]()
            counts[i] += 1

    threads = [threading.Thread(target=work, args=(i,)) for i in range(len(steps))]
    begin = time.perf_counter()
    for thread in threads:
        thread.start()
    end.wait(seconds)
    end.set()
    for thread in threads:
        thread.join()
    return sum(counts) / (time.perf_counter() - begin)


def work(library: str, folder: Path, counts: Sequence[int], seconds: float) -> None:
    """Prints a library's version, its rates by program and threads, and a result of each."""
    rates, results = {}, {}
    for name in INPUTS:
        steps = [LIBRARIES[library](folder, name) for _ in range(max(counts))]
        results[name] = np.ravel(steps[0]())[:5].tolist()
        for step in steps * 3:
            step()
        rates[name] = [rate(steps[:count], seconds) for count in counts]
    version = importlib.metadata.version("opdock-core" if library == "opdock" else library)
    print(json.dumps({"version": version, "rates": rates, "results": results}))


# ---------------------------------------------------------------- side by side
def turn(library: str, python: str, folder: str, counts: Sequence[int], seconds: float) -> Any:
    """What a library tells in a process of its own."""
    command = [python, __file__, "--library", library, "--folder", folder]
    command += ["--seconds", str(seconds), "--threads", *map(str, counts)]
    out = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    return json.loads(out.splitlines()[-1])


def check(told: Mapping[str, Any]) -> None:
    """Raises ValueError where libraries disagree about a result."""
    for name in INPUTS:
        own = told["opdock"]["results"][name]
        for library, found in told.items():
            if not np.allclose(own, found["results"][name], 1e-3, 1e-4):
                raise ValueError(f"{name}: {library} gives {found['results'][name]}, not {own}")


def table(turns: Sequence[Mapping[str, Any]], counts: Sequence[int]) -> str:
    """A Markdown table of the medians of all turns: steps a second, and how they compare."""
    from report import number, rows_of

    def steps(library: str, name: str, i: int) -> float:
        return statistics.median(told[library]["rates"][name][i] for told in turns)

    peers = [library for library in turns[0] if library != "opdock"]
    body = []
    for name in INPUTS:
        for i, count in enumerate(counts):
            own = steps("opdock", name, i)
            cells = [name, str(count), number(own), f"{own / steps('opdock', name, 0):.2f}"]
            body.append([*cells, *(f"{own / steps(peer, name, i):.2f}" for peer in peers)])
    head = ["program", "threads", "steps a second", "in parts of one thread's"]
    return rows_of([*head, *(f"opdock / {peer}" for peer in peers)], body)


def main(words: Sequence[str]) -> None:
    """Reads the command line, measures and prints."""
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--peer", action="append", default=[], metavar="LIBRARY=PYTHON")
    p.add_argument("--seconds", type=float, default=2.0, help="of each measurement")
    p.add_argument("--turns", type=int, default=3, help="of all libraries")
    p.add_argument("--threads", type=int, nargs="+", default=[1, 2, 4])
    p.add_argument("--write", type=Path, help="the page to put the table into")
    p.add_argument("--library", choices=sorted(LIBRARIES), help=argparse.SUPPRESS)
    p.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    args = p.parse_args(words)
    if args.library:
        work(args.library, args.folder, args.threads, args.seconds)
        return
    from options import quoted
    from report import line, machine, replace

    pythons = {"opdock": sys.executable, **dict(peer.split("=", 1) for peer in args.peer)}
    turns = []
    with tempfile.TemporaryDirectory() as folder:
        written(Path(folder))
        for _ in range(args.turns):
            one = (folder, args.threads, args.seconds)
            turns.append({library: turn(library, pythons[library], *one) for library in pythons})
            check(turns[-1])
    about = {
        **machine(), "date": time.strftime("%Y-%m-%d"),
        "command": quoted(words, "side_by_side.py"),
    }  # fmt: skip
    text = f"{line(about, turns[0])}\n\n{table(turns, args.threads)}"
    print(text)
    if args.write:
        replace(args.write, {"benchmarks: threads": text})


if __name__ == "__main__":
    main(sys.argv[1:])
