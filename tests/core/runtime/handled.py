"""A program in whose first steps a signal handler runs steps, at chosen calls of opdock's.

`python handled.py POINT...`: each point in a child of its own, in which nothing is compiled or
imported yet. A point is the number of a call in the main thread, or the name of a function: its
first call. What is printed is how many points there were.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import sys
import tempfile
import traceback
from types import FrameType
from typing import Any

import numpy as np

import opdock as tf

_HANGS = 900  # seconds: for what stands still, and nothing else
X = np.ones((4, 8), np.float32)
ROWS = 1 << 15  # so many that they are written in place


class Program:
    """Training, control flow, state, random numbers, a queue, a pipeline and a checkpoint."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.x = tf.placeholder(tf.float32, [None, 8])
        w = tf.get_variable("w", initializer=np.full((8, 8), 0.1, np.float32))
        h = tf.nn.relu(tf.matmul(self.x, w))
        self.loss = tf.reduce_mean(tf.square(h))
        self.train = tf.train.AdamOptimizer(0.1).minimize(self.loss)
        self.turns = tf.while_loop(
            lambda i, s: i < 3, lambda i, s: (i + 1, s + tf.reduce_sum(tf.sin(h))), [0, 0.0]
        )[1]
        self.table = tf.get_variable("table", [ROWS], initializer=tf.zeros_initializer())
        self.scatter = tf.scatter_update(self.table, [1], [2.0])
        self.random = tf.random_normal([3])
        self.sorted = tf.sort(tf.reshape(self.x, [-1]))
        self.called = tf.py_func(lambda v: np.float32(v + 1), [self.loss], tf.float32)
        self.element = tf.data.Dataset.range(50).map(lambda n: n + 1).make_one_shot_iterator()
        self.next = self.element.get_next()
        queue = tf.FIFOQueue(50, tf.int32, [[]])
        self.enqueue, self.dequeue = queue.enqueue(3), queue.dequeue()
        self.saver = tf.train.Saver(max_to_keep=100)
        self.init = tf.global_variables_initializer()
        self.session = tf.Session()
        self.ready = False
        self.losses: list[float] = []
        self.drawn: list[tuple[float, ...]] = []

    def main(self) -> None:
        """What is disturbed."""
        run = self.session.run
        run(self.init)
        self.ready = True
        for _ in range(3):
            self.losses.append(run([self.loss, self.train], {self.x: X})[0])
            self.drawn.append(tuple(run(self.random)))
        assert np.isfinite(run(self.turns, {self.x: X}))
        assert (run(self.sorted, {self.x: X}) == 1).all()
        assert run(self.scatter)[1] == 2
        assert run(self.next) == 1
        assert run(self.called, {self.x: X}) >= 1
        run(self.enqueue)
        assert run(self.dequeue) == 3
        self.saver.save(self.session, f"{self.folder}/main")
        assert self.losses[0] > self.losses[1] > self.losses[2]

    def handler(self) -> None:
        """What a handler does: it looks, draws, and saves."""
        try:
            self._handle()
        except tf.errors.FailedPreconditionError:
            assert not self.ready  # there are no values yet

    def _handle(self) -> None:
        run = self.session.run
        for fetch in (self.loss, self.turns, self.sorted, self.called):
            assert np.isfinite(run(fetch, {self.x: X})).all()
        self.drawn.append(tuple(run(self.random)))
        assert run(self.table)[1] in (0, 2)
        self.saver.save(self.session, f"{self.folder}/handler")

    def after(self) -> None:
        """What is left: whole checkpoints, and numbers that came once."""
        assert len(set(self.drawn)) == len(self.drawn)
        found = self.session.run(self.table)
        assert found[1] == 2 and not found[2:].any()
        for name in os.listdir(self.folder):
            if name.endswith(".index"):
                reader = tf.train.NewCheckpointReader(f"{self.folder}/{name[:-6]}")
                assert np.isfinite(reader.get_tensor("w")).all()


class Signal:
    """Calls a handler at one call in this thread."""

    def __init__(self, point: str, handler: Any) -> None:
        self.left = int(point) if point.isdigit() else 0
        self.name, self.handler, self.at = point, handler, ""

    def enter(self, frame: FrameType, event: str, arg: Any) -> Any:
        """A call; the handler comes before the first line of it."""
        code = frame.f_code
        if self.at or "opdock" not in code.co_filename:
            return None
        self.left -= 1
        if self.left == 0 or code.co_qualname == self.name:
            sys.settrace(None)
            self.at = f"{code.co_qualname} in {os.path.basename(code.co_filename)}"
            return self._line
        return None

    def _line(self, frame: FrameType, event: str, arg: Any) -> None:
        self.handler()


def disturbed(point: str) -> bool:
    """Runs the program; whether there was such a point."""
    with tempfile.TemporaryDirectory() as folder:
        program = Program(folder)
        come = Signal(point, program.handler)
        signal.signal(signal.SIGTERM, lambda *_: None)  # that there may be one is known by this
        sys.settrace(come.enter)
        try:
            program.main()
        except BaseException:
            print(f"point {point}, {come.at}", file=sys.stderr)
            raise
        finally:
            sys.settrace(None)
        program.after()
    return bool(come.at)


def in_child(point: str) -> int:
    """0 if all went well and there was such a point, 1 if there was none, 2 for an error."""
    child = os.fork()
    if not child:
        faulthandler.dump_traceback_later(_HANGS, exit=True)
        status = 2
        try:
            status = not disturbed(point)
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


if __name__ == "__main__":
    met = [in_child(point) for point in sys.argv[1:]]
    print(met.count(0))
    sys.exit(any(status not in (0, 1) for status in met))
