"""Programs under the passes of the fixture `passes`; run in a process of its own, prints JSON."""

from __future__ import annotations

import json
import sys
import traceback

import fixture_passes as passes
import numpy as np

import opdock as tf

FEED = [0.25, 1.0]


def session(on: str = "", off: str = "", level: int = 0) -> tf.Session:
    config = tf.ConfigProto()
    config.graph_options.optimizer_options.opt_level = level
    options = config.graph_options.rewrite_options.custom_optimizers.add(name="opdock")
    options.parameter_map["enable_passes"].s = on.encode()
    options.parameter_map["disable_passes"].s = off.encode()
    return tf.Session(config=config)


def run(build, on="", off="", level=0):
    """Values, and what `explain` says of each node."""
    with tf.Graph().as_default(), session(on, off, level) as s:
        x = tf.placeholder(tf.float32, [2], name="x")
        fetch = build(x)
        values = s.run(fetch, {x: FEED})
        rows = s.explain(fetch, {x: FEED}).rows
        values = [np.asarray(v).round(5).tolist() for v in values if v is not None]
        return values, {r.node: (r.op, r.how, r.why) for r in rows}


def everywhere(x):
    """A step with a loop, and with a branch that is taken."""
    with tf.name_scope("loop"):
        _, y = tf.while_loop(
            lambda i, v: i < 2, lambda i, v: (i + 1, tf.tanh(v) + x), [0, x], name="turns"
        )
    z = tf.cond(tf.reduce_sum(x) > 0, lambda: tf.tanh(y * x), lambda: y, name="choice")
    return [tf.tanh(x, name="plain"), z]


def stages():
    """Every stage of a step and of bodies; and each alone changes what is computed there."""
    plain, _ = run(everywhere)
    log = sorted({(stage, within) for stage, within, _ in passes.LOG})
    found = {"plain": plain, "log": log}
    for stage in ("before_place", "after_place", "after_fuse"):
        found[stage], rows = run(everywhere, on=f"double_{stage}", level=-1)
        found[f"{stage}_rows"] = [r for r in rows.items() if "twice" in r[0]]
    return found


def verbs():
    def checked(x):
        return [tf.check_numerics(x, "bad", name="check") + 1.0, tf.check_numerics(x, "bad")]

    def negated(x):
        return [tf.negative(tf.negative(x, name="inner"), name="outer") * 3.0]

    def printed(x):
        return [tf.sqrt(x, name="root")]

    def asserted(x):
        with tf.control_dependencies([tf.Assert(x[0] > 1.0, [x])]):
            return [tf.sqrt(x)]

    return {
        "checks": run(checked, on="drop_checks"),
        "straighten": run(negated, on="straighten", level=-1),
        "announce": run(printed, on="announce"),
        "twins": run(lambda x: [tf.floor(x)], on="twins"),
        "unhook": run(asserted, on="unhook"),
        "try_out": run(negated, on="try_out", level=-1),
        "not_tried": run(printed, on="try_out"),
    }


def broken():
    def build(x):
        return [tf.cast(tf.exp(tf.exp(tf.tanh(x, name="bent"))), tf.int32)]

    found = {}
    for name in sys.argv[2].split(","):
        try:
            run(build, on=name, level=-1)
        except Exception as e:
            text = "".join(traceback.format_exception(e))
            found[name] = [type(e).__name__, str(e), "fixture_passes.py" in text]
    return found


def switches():
    """What is on, by what the environment and the configuration say."""

    def build(x):
        return [tf.tanh(x)]

    def doubled(**options):
        del passes.LOG[:]
        values, _ = run(build, **options)
        return values[0][1] > 1.0, len(passes.LOG)

    return {
        "nothing": doubled(),
        "on": doubled(on="double_before_place"),
        "off": doubled(off="look_after_place,look_after_fuse"),
        "both": doubled(on="double_before_place", off="double_before_place"),
        "level": doubled(level=-1),
        "level_on": doubled(on="double_before_place", level=-1),
    }


def unknown():
    try:
        run(lambda x: [tf.tanh(x)], on="doubel")
    except tf.errors.InvalidArgumentError as e:
        return str(e)


PROGRAMS = {f.__name__: f for f in (stages, verbs, broken, switches, unknown)}
print(json.dumps(PROGRAMS[sys.argv[1]]()))
