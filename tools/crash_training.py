"""Kills training runs at random moments, lets them go on, and compares the weights at the end.

    python tools/crash_training.py --kind monitored --kills 50 --seed 1

A run is a process of its own that SIGKILLs itself at a moment that the seed decides: after so many
steps and calls of the file system, whatever the clock says. The next one goes on from the last
checkpoint. After the last kill one runs to the end: its weights must be, bit by bit, those of a run
that nobody has disturbed. No code is compiled (OPDOCK_JIT=off): when it is there depends on the
clock, and what stands in for it until then may round in another way.

Batches come from an iterator over shuffled epochs that is saved with the variables; with `--input
fed` from the number of the step. An element that came twice, or not at all, would show in the
weights.

With `--signal INT` or `TERM` the signal comes from outside, whenever it likes. Ctrl-C has to end a
run within a minute as KeyboardInterrupt, with no file half-written beside the checkpoints.
"""

from __future__ import annotations

import argparse
import functools
import os
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import opdock as tf

STEPS = 24
EVERY = 5
"""Steps between two checkpoints."""
MOMENTS = 60
"""Kills come at one of so many moments; a run has about twice as many."""


class Bomb:
    """Kills the process at the n-th moment; never, if n is 0."""

    def __init__(self, moment: int) -> None:
        self.left = moment

    def tick(self) -> None:
        """A moment."""
        self.left -= 1
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def arm(self, name: str) -> None:
        """Makes the moments before and after a function of `os` moments of this."""
        function = getattr(os, name)

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            self.tick()
            result = function(*args, **kwargs)
            self.tick()
            return result

        setattr(os, name, call)


Feed = Callable[[int], dict[Any, Any]]
"""What a step of a number is fed."""


def model(saved: bool) -> tuple[Any, Feed, dict[str, Any]]:
    """A small model with slots: the operation of a step, what it is fed, and the variables.

    Args:
        saved: whether its batches come from a saved iterator.
    """
    x = elements() if saved else tf.placeholder(tf.float32, [4, 8])
    train, _ = network(x)
    feed: Feed = (lambda _: {}) if saved else (lambda step: {x: batch(step)})
    return train, feed, {v.op.name: v for v in tf.global_variables()}


def elements() -> Any:
    """The next batch of epochs of eleven rows, shuffled anew each, by an iterator that is saved."""
    rows = tf.data.Dataset.range(11).shuffle(7, seed=3).repeat()
    made = rows.map(_row, num_parallel_calls=2).batch(4, drop_remainder=True).prefetch(2)
    # One that initializes itself: a checkpoint is restored before any initializer runs.
    iterator = tf.data.make_one_shot_iterator(made)
    saveable = tf.data.experimental.make_saveable_from_iterator(iterator)
    tf.add_to_collection(tf.GraphKeys.SAVEABLE_OBJECTS, saveable)
    return iterator.get_next()


def _row(number: Any) -> Any:
    return tf.sin(tf.cast(number, tf.float32) + tf.range(8.0))


def network(x: Any) -> tuple[Any, Any]:
    """The operation of a step, and the loss."""
    step = tf.train.get_or_create_global_step()
    hidden = tf.layers.dense(x, 16, tf.nn.tanh, kernel_initializer=tf.ones_initializer())
    loss = tf.reduce_mean(tf.square(tf.layers.dense(hidden, 1) - tf.reduce_sum(x, 1)))
    return tf.train.AdamOptimizer(0.01).minimize(loss, global_step=step), loss


def batch(step: int) -> Any:
    """What a step is fed: the same, whichever process takes it."""
    return np.random.RandomState(step).standard_normal((4, 8)).astype(np.float32)


def monitored(folder: str, bomb: Bomb, saved: bool) -> dict[str, Any]:
    """Trains under a MonitoredTrainingSession."""
    train, feed, variables = model(saved)
    hooks = [tf.train.StopAtStepHook(last_step=STEPS)]
    values: dict[str, Any] = {}
    with tf.train.MonitoredTrainingSession(
        checkpoint_dir=folder, save_checkpoint_steps=EVERY, save_summaries_steps=None, hooks=hooks
    ) as session:
        step = session.run_step_fn(lambda step_context: _step(step_context.session))
        while not session.should_stop():
            session.run(train, feed(step))
            step += 1
            bomb.tick()
            if step == STEPS:
                values = session._tf_sess().run(variables)
    return values


def supervised(folder: str, bomb: Bomb, saved: bool) -> dict[str, Any]:
    """Trains under a Supervisor."""
    train, feed, variables = model(saved)
    supervisor = tf.train.Supervisor(logdir=folder, summary_op=None, save_model_secs=0)
    with supervisor.managed_session() as session:
        step = _step(session)
        while step < STEPS and not supervisor.should_stop():
            session.run(train, feed(step))
            step += 1
            bomb.tick()
            if step % EVERY == 0:
                supervisor.saver.save(session, supervisor.save_path, global_step=step)
        values: dict[str, Any] = session.run(variables)
    return values


def estimated(folder: str, bomb: Bomb, saved: bool) -> dict[str, Any]:
    """Trains an Estimator."""

    def steps() -> Any:
        # Training starts with the step after the checkpoint's, and so does its input.
        for step in range(done, STEPS):
            bomb.tick()
            yield batch(step)

    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        train, loss = network(features)
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train)

    config = tf.estimator.RunConfig(
        folder, tf_random_seed=1, save_checkpoints_steps=EVERY, save_summary_steps=None,
        log_step_count_steps=None,
    )  # fmt: skip
    estimator = tf.estimator.Estimator(model_fn, config=config)
    known = tf.train.latest_checkpoint(folder) is not None
    done = int(estimator.get_variable_value("global_step")) if known else 0
    if done < STEPS:
        generated = functools.partial(tf.data.Dataset.from_generator, steps, tf.float32, [4, 8])
        estimator.train(elements if saved else generated, max_steps=STEPS)
    return {name: estimator.get_variable_value(name) for name in estimator.get_variable_names()}


def _step(session: Any) -> int:
    return int(session.run(tf.train.get_global_step()))


KINDS: dict[str, Callable[[str, Bomb, bool], dict[str, Any]]] = {
    "estimated": estimated,
    "monitored": monitored,
    "supervised": supervised,
}


INTERRUPTED = 130
"""The exit status of a run that Ctrl-C has ended."""
PATIENCE = 60
"""Seconds in which a run that was signalled has to end."""


def run(
    kind: str, saved: bool, folder: Path, moment: int, signalled: tuple[int, float] | None = None
) -> bool:
    """A run in a process of its own; whether it came to its end.

    Args:
        kind: which.
        saved: whether its batches come from a saved iterator.
        folder: where it keeps its checkpoints.
        moment: when it kills itself; 0 for never.
        signalled: the signal that it gets from outside, and after how many seconds.

    Raises:
        RuntimeError: it failed by itself, or did not end when it was told to.
    """
    child = os.fork()
    if child == 0:
        status = 1
        try:
            tf.set_random_seed(1)
            bomb = Bomb(moment)
            for name in ("replace", "rename", "fsync", "unlink", "remove"):
                bomb.arm(name)
            values = KINDS[kind](str(folder), bomb, saved)
            np.savez(folder / "weights.npz", **{k.replace("/", "."): v for k, v in values.items()})
            status = 0
        except KeyboardInterrupt:
            status = INTERRUPTED
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    status = os.waitpid(child, 0)[1] if signalled is None else _signalled(child, *signalled)
    if os.WIFEXITED(status) and os.WEXITSTATUS(status) == INTERRUPTED:
        left = [p.name for p in folder.rglob("*") if ".tempstate" in p.name]
        if left:
            raise RuntimeError(f"a run of {kind} that was interrupted left {left}")
        return False
    if os.WIFEXITED(status) and os.WEXITSTATUS(status):
        raise RuntimeError(f"a run of {kind} that was to be killed at {moment} failed by itself")
    return os.WIFEXITED(status)


def _signalled(child: int, number: int, after: float) -> int:
    """Sends a process a signal once some time is over; its status when it has ended."""
    deadline, sent = time.monotonic() + after, False
    while True:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return status
        if time.monotonic() >= deadline:
            os.kill(child, signal.SIGABRT if sent else number)
            if sent:
                os.waitpid(child, 0)
                raise RuntimeError(f"a run does not end {PATIENCE} s after signal {number}")
            deadline, sent = time.monotonic() + PATIENCE, True
        time.sleep(0.002)


def crash(
    kind: str, saved: bool, kills: int, seed: int, folder: Path, number: int = signal.SIGKILL
) -> int:
    """Runs that are killed, and one to the end; how many were killed.

    Args:
        kind: which runs.
        saved: whether their batches come from a saved iterator.
        kills: how often.
        seed: of the moments.
        folder: for their checkpoints.
        number: the signal; any but SIGKILL comes from outside, within the time of a whole run.

    Raises:
        AssertionError: the weights differ from those of an undisturbed run.
    """
    calm, wild = folder / "calm", folder / "wild"
    begin = time.monotonic()
    run(kind, saved, calm, 0)
    long = time.monotonic() - begin
    moments = np.random.RandomState(seed)
    killed = 0
    for _ in range(kills):
        if number == signal.SIGKILL:
            ended = run(kind, saved, wild, int(moments.randint(1, MOMENTS + 1)))
        else:
            ended = run(kind, saved, wild, 0, (number, float(moments.uniform(0, long))))
        if ended:
            shutil.rmtree(wild)  # it was done before its moment came: from the start
        else:
            killed += 1
    run(kind, saved, wild, 0)
    expected, found = (np.load(f / "weights.npz") for f in (calm, wild))
    assert sorted(expected) == sorted(found)
    for name in expected:
        assert expected[name].tobytes() == found[name].tobytes(), name
    return killed


def main(arguments: list[str]) -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kind", choices=sorted(KINDS), action="append")
    parser.add_argument("--input", choices=("saved", "fed"), default="saved")
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--signal", choices=("KILL", "INT", "TERM"), default="KILL")
    args = parser.parse_args(arguments)
    os.environ["OPDOCK_JIT"] = "off"
    saved = args.input == "saved"
    for kind in args.kind or sorted(KINDS):
        # What a run imports here, those that are killed need not import.
        with tempfile.TemporaryDirectory() as folder, tf.Graph().as_default():
            KINDS[kind](folder, Bomb(0), saved)
        with tempfile.TemporaryDirectory() as folder:
            number = getattr(signal, f"SIG{args.signal}")
            killed = crash(kind, saved, args.kills, args.seed, Path(folder), number)
        ended = "killed" if args.signal == "KILL" else f"ended by SIG{args.signal}"
        print(f"{kind}: {ended} {killed} times, the weights are those of an undisturbed run")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
