"""Programs on the devices of the fixture `mason`; run in a process of its own, prints JSON."""

from __future__ import annotations

import gc
import json
import sys
import weakref

import fixture_mason as mason
import numpy as np

import opdock as tf
from opdock import timeline

ONE, OTHER = "/device:MASON:0", "/device:MASON:1"


def session(*passes: str) -> tf.Session:
    config = tf.ConfigProto(allow_soft_placement=True)
    options = config.graph_options.rewrite_options.custom_optimizers.add(name="opdock")
    options.parameter_map["enable_passes"].s = ",".join(passes).encode()
    return tf.Session(config=config)


def plain(values):
    return [np.asarray(v).round(5).tolist() for v in values if v is not None]


def rich(device):
    """A step with variables of each use, random numbers, a loop and a branch."""
    with tf.device(device):
        x = tf.placeholder(tf.float32, [2, 3], name="x")
        read = tf.get_variable("read", initializer=tf.ones([3]), use_resource=True)
        grown = tf.get_variable("grown", initializer=tf.zeros([2, 3]), use_resource=False)
        put = tf.get_variable("put", initializer=tf.zeros([]), use_resource=True)
        noise = tf.random_uniform([2, 3], seed=3, name="noise")
        _, y = tf.while_loop(
            lambda i, v: i < 3, lambda i, v: (i + 1, tf.tanh(v) + read), [0, x], name="turns"
        )
        z = tf.cond(y[0, 0] > 0.0, lambda: y * 2.0, lambda: y - 1.0, name="choice")
        out = tf.matmul(z, tf.ones([3, 1]), name="out")
        update = tf.group(tf.assign_add(grown, z + noise), tf.assign(put, tf.reduce_sum(z)))
    return x, [out, update], [read, grown, put]


FEED = [[0.5, -0.25, 1.0], [2.0, 0.0, -1.0]]


def view():
    """What the compiler is shown of it, and that its nodes' functions are what the step is."""
    found = {}
    for device in ("/cpu:0", ONE):
        with tf.Graph().as_default(), session() as s:
            tf.set_random_seed(7)
            x, fetches, variables = rich(device)
            s.run(tf.global_variables_initializer())
            mason.asked.segments.clear()
            values = [s.run(fetches, {x: FEED})[0] for _ in range(2)]
            found[device] = plain([*values, *s.run(variables)])
    segment = max(mason.asked.segments, key=lambda g: len(g.nodes))
    made = {*segment.params, *segment.constants}
    in_order = True
    for node in segment.nodes:
        in_order &= set(node.inputs) <= made
        made |= set(node.outputs)
    return {
        "device": segment.device.attributes.index,
        "inputs": [[v.name, v.dtype.name, v.shape] for v in segment.inputs],
        "outputs": [[v.name, v.dtype.name, v.shape] for v in segment.outputs],
        "variables": {
            v.name: [v.dtype.name, v.shape, v.read, v.written] for v in segment.variables
        },
        "streams": [s.name for s in segment.streams],
        "in order": in_order,
        "without call": sorted(n.op for n in segment.nodes if n.call is None),
        "bodies": {
            n.name: {k: [type(b).__name__, len(b.nodes) > 0] for k, b in n.bodies.items()}
            for n in segment.nodes if n.bodies
        },
        "lines": sorted({n.line.rpartition("/")[2].partition(":")[0] for n in segment.nodes}),
        "values": [found["/cpu:0"], found[ONE]],
    }  # fmt: skip


def split():
    """A node that is refused stands between two segments, with the reason."""
    mason.Compiler.refused = {"Cholesky": "no triangles"}
    with tf.device(ONE):
        x = tf.placeholder(tf.float32, [2, 2], name="x")
        y = tf.matmul(tf.cholesky(tf.matmul(x, x) + tf.eye(2), name="root"), x, name="y")
    with session() as s:
        value = s.run(y, {x: np.eye(2)})
        told = s.explain(y, {x: np.eye(2)})
    (root,) = [r for r in told.rows if r.node == "root"]
    return plain([value]), len(mason.asked.runs), root.how, list(root.missed)


def late():
    """Results that are finished when somebody reads them, or fail then."""
    mason.Compiler.make = mason.Late
    with tf.device(ONE):
        x = tf.placeholder(tf.float32, [2], name="x")
        y = tf.exp(tf.nn.softmax(x, name="soft"), name="last")
    with session() as s:
        before = s.run(y, {x: [1.0, 1.0]})
        mason.Late.fails = tf.errors.InvalidArgumentError(None, None, "crumbled")
        try:
            s.run(y, {x: [1.0, 1.0]})
        except tf.errors.InvalidArgumentError as e:
            error = str(e)
        mason.Late.fails = None
        again = s.run(y, {x: [1.0, 1.0]})
    return plain([before, again]), error


def reuse():
    """Memory of inputs that nobody needs any more is the executable's at its next run."""
    mason.Compiler.make, mason.Compiler.refused = mason.Thrifty, {"Cholesky": "no triangles"}
    with tf.device(ONE):
        x = tf.placeholder(tf.float32, [2, 2], name="x")
        middle = tf.cholesky(tf.matmul(x, x, name="square"), name="root")
        y = tf.matmul(middle, x, name="y")
    kept = []
    with session() as s:
        for i in range(1, 7):
            value = np.eye(2, dtype=np.float32) * i
            kept.append((value, *s.run([y, middle], {x: value})))
            if i > 3:
                s.run(y, {x: value})
    right = all(
        np.allclose(v, np.eye(2) * i) and np.allclose(m, np.eye(2) * i)
        and np.allclose(a, np.eye(2) * i * i)
        for i, (v, a, m) in enumerate(kept, 1)
    )  # fmt: skip
    return right, mason.Thrifty.reused


def keys():
    """The keys of computations, under names that this process was given."""
    name = sys.argv[2]

    def key(build, *passes):
        mason.asked.segments.clear()
        with tf.Graph().as_default(), tf.device(ONE), tf.name_scope(name):
            x = tf.placeholder(tf.float32, [2, 2], name=name)
            with session(*passes) as s:
                s.run(build(x), {x: np.eye(2)})
        (segment,) = mason.asked.segments
        return segment.key

    def turns(limit):
        return lambda x: tf.while_loop(
            lambda v: tf.reduce_sum(v) < 1e6, lambda v: v * 2.0, [x], maximum_iterations=limit
        )

    def hinted(value):
        mason.hint.value = value
        return key(lambda x: tf.matmul(x, x), "mason_hint")

    return {
        "cluster": key(lambda x: tf.tanh(x * 2.0 + 1.0)),
        "number": key(lambda x: tf.tanh(x * 3.0 + 1.0)),
        "function": key(lambda x: tf.sin(x * 2.0 + 1.0)),
        "reduction": key(lambda x: tf.reduce_sum(x * 2.0 + 1.0, 0)),
        "axis": key(lambda x: tf.reduce_sum(x * 2.0 + 1.0, 1)),
        "attribute": key(lambda x: tf.matmul(x, x)),
        "transposed": key(lambda x: tf.matmul(x, x, transpose_b=True)),
        "constant": key(lambda x: tf.matmul(x, np.eye(2, dtype=np.float32))),
        "other constant": key(lambda x: tf.matmul(x, np.ones((2, 2), np.float32))),
        "fusion": key(lambda x: tf.nn.relu(tf.nn.bias_add(x, [1.0, 2.0]))),
        "turns": key(turns(3)),
        "more turns": key(turns(4)),
        "hint": hinted(1),
        "other hint": hinted(2),
    }


def release():
    """An executable goes with the last program that holds it."""
    found = {}

    def born():
        mason.asked.segments.clear()
        gc.collect()
        return [weakref.ref(g) for g in gc.get_objects() if isinstance(g, mason.Executable)]

    def living(all_):
        gc.collect()
        return sum(g() is not None for g in all_)

    with tf.device(ONE):
        x = tf.placeholder(tf.float32, [2], name="x")
        y = tf.nn.softmax(x)
    s = session()
    s.run(y, {x: [1.0, 2.0]})
    made = born()
    found["made"] = living(made)
    y.op._add_control_input(x.op)
    found["after the graph has changed"] = living(made)
    s.run(y, {x: [1.0, 2.0]})
    made = born()
    found["made anew"] = living(made)
    s.close()
    found["after the session"] = living(made)
    return found


def shown():
    """explain, RunMetadata, partition graphs and the timeline name a segment and its ops."""
    with tf.device(ONE):
        x = tf.placeholder(tf.float32, [2, 2], name="x")
        y = tf.matmul(tf.nn.softmax(x, name="soft"), x, name="last")
    options = tf.RunOptions(
        trace_level=tf.RunOptions.FULL_TRACE, output_partition_graphs=True
    )  # fmt: skip
    metadata = tf.RunMetadata()
    with session() as s:
        s.run(y, {x: np.eye(2)}, options=options, run_metadata=metadata)
        told = s.explain(y, {x: np.eye(2)}, metadata)
    labels = [n.timeline_label for d in metadata.step_stats.dev_stats for n in d.node_stats]
    events = json.loads(timeline.Timeline(metadata.step_stats).generate_chrome_trace_format())
    return {
        "explain": told.segments,
        "text": str(told),
        "labels": [text for text in labels if "_Segment" in text],
        "ops": [n.op for g in metadata.partition_graphs for n in g.node],
        "timeline": sorted({e["name"] for e in events["traceEvents"] if e["ph"] == "X"}),
    }


def hooks():
    """A route, a data format, a namespace's device and a fusion, as programs meet them."""
    with tf.device(ONE):
        images = tf.placeholder(tf.float32, [1, 2, 2, 3], name="images")
        conved = tf.nn.conv2d(images, np.ones((1, 1, 3, 2), np.float32), 1, "SAME", name="conv")
        pooled = tf.reduce_mean(conved, [1, 2])
        fused = tf.nn.relu(tf.nn.bias_add(pooled, [1.0, -100.0]), name="fused")
    with tf.device(OTHER):
        made = tf.linspace(fused[0, 0], fused[0, 0], 2)[:, tf.newaxis]
        moved = tf.matmul(fused, made * 0.0 + 2.0, name="moved")
    feed = {images: np.arange(12, dtype=np.float32).reshape(1, 2, 2, 3)}
    with session() as s:
        value = s.run(moved, feed)
        told = s.explain(moved, feed)
    return {
        "value": plain([value]),
        "formats": mason.asked.formats,
        "fused": mason.asked.fused,
        "carried": mason.asked.carried,
        "made": sorted(set(map(tuple, mason.asked.made))),
        "text": str(told),
    }


def reading():
    """What a program that writes no variable is given, step by step, and what of it lives on."""
    given = []

    class Reader(mason.Executable):
        def __call__(self, inputs, state, places):
            if not any(v.written for v in self.segment.variables):
                given.append([id(v) for v in state])
            return super().__call__(inputs, state, places)

    mason.Compiler.make = Reader
    with tf.device(ONE):
        x = tf.placeholder(tf.float32, [2], name="x")
        a = tf.get_variable("a", initializer=[1.0, 2.0], use_resource=True)
        b = tf.get_variable("b", initializer=[3.0, 4.0], use_resource=False)
        y = tf.add(x * a, b, name="y")
        more = tf.group(tf.assign_add(a, [1.0, 1.0]))
        new = tf.placeholder(tf.float32, [2])
        put = tf.group(tf.assign(b, new))
    feed = {x: np.float32([1, 10])}
    with session() as s:
        wrong = ""
        try:
            s.run(y, feed)
        except tf.errors.FailedPreconditionError as e:
            wrong = e.message.partition(" ")[0]
        s.run(tf.global_variables_initializer())
        s.run(put, {new: np.float32([3, 4])})  # the first value is a constant's, too
        given.clear()
        values = [s.run(y, feed), s.run(y, feed)]
        old = weakref.ref(s._engine.resources.cell("", "b", None).box[0])
        s.run(put, {new: np.float32([0, 1])})
        kept = old() is not None
        values.append(s.run(y, feed))
        s.run(more)
        values += [s.run(y, feed), s.run(y, feed)]
    first, second, third, fourth, fifth = given
    same = [first == second, third[0] == second[0], fourth[1] == third[1], fifth == fourth]
    return wrong != "", plain(values), kept, same


PROGRAMS = {f.__name__: f for f in (view, split, late, reuse, keys, release, shown, hooks, reading)}
print(json.dumps(PROGRAMS[sys.argv[1]](), default=list))
