"""Programs over the ops of the fixture `own_ops`: run with every pass, and with none.

A process of its own runs this file, as the plugin is installed for it alone; it prints JSON.
"""

from __future__ import annotations

import json
import sys

import fixture_own_ops as own
import numpy as np

import opdock as tf
from opdock.plugin import find_op

op = {
    name: find_op(f"own>{name}")
    for name in ("Record", "Bump", "Peek", "Dice", "Tag", "Meet", "Bend")
}


def session(passes: bool) -> tf.Session:
    config = tf.ConfigProto(inter_op_parallelism_threads=2, intra_op_parallelism_threads=1)
    config.graph_options.optimizer_options.opt_level = 0 if passes else -1
    return tf.Session(config=config)


def effects(s: tf.Session) -> object:
    """Effects happen once each, in order, whether anybody uses the result or not."""
    x = tf.constant([1.0, 2.0])
    first = op["Record"](x, tag=1)
    again = op["Record"](x, tag=1)
    with tf.control_dependencies([again]):
        last = op["Record"](x + first, tag=2)
    tail = op["Record"](tf.nn.relu(last) * 2.0, tag=3)
    del own.RECORD[:]
    y = s.run([tail, first])
    return [np.array(v).tolist() for v in y], sorted(own.RECORD[:2]), own.RECORD[2:]


def state(s: tf.Session) -> object:
    """Reads see the writes that came before them, and only those."""
    v = tf.get_variable("v", initializer=[1.0, 2.0], use_resource=True)
    s.run(v.initializer)
    before = op["Peek"](v.handle, T=tf.float32)
    with tf.control_dependencies([before]):
        write = op["Bump"](v.handle, [10.0, 10.0])
    with tf.control_dependencies([write]):
        after = op["Peek"](v.handle, T=tf.float32)
        mixed = tf.nn.relu(after - 1.0) * op["Peek"](v.handle, T=tf.float32)
        with tf.control_dependencies([mixed]):
            more = op["Bump"](v.handle, [1.0, 1.0])
    values = s.run([before, after, mixed, more])[:3]
    return [np.array(a).tolist() for a in values], s.run(v).tolist()


def draws(s: tf.Session) -> object:
    """Equal random nodes are not merged, folded or taken out of a loop."""
    one = tf.constant([1.0, 1.0, 1.0])
    a, b = op["Dice"](one, seed=1, seed2=2), op["Dice"](one, seed=1, seed2=2)
    _, total, last = tf.while_loop(
        lambda i, t, d: i < 3,
        lambda i, t, d: (
            i + 1,
            t + op["Dice"](one, seed=3, seed2=4),
            op["Dice"](one, seed=5, seed2=6),
        ),
        (0, tf.zeros([3]), tf.zeros([3])),
    )
    first = s.run([a, b, total, last])
    second = s.run([a, b, total, last])
    assert not np.array_equal(first[0], second[0])
    return [np.array(v).round(5).tolist() for v in (*first, *second)]


def alias(s: tf.Session) -> object:
    """It needs no kernel, disappears between fused ops and hands gradients through."""
    x = tf.placeholder(tf.float32, [4, 4])
    y = tf.reduce_sum(op["Bend"](op["Tag"](tf.nn.relu(x))) * op["Tag"](x))
    grad = tf.gradients(y, x)[0]
    image = tf.placeholder(tf.float32, [1, 4, 4, 1])
    turned = tf.transpose(op["Tag"](tf.transpose(image, [0, 3, 1, 2])), [0, 2, 3, 1])
    feed = {
        x: np.arange(-8, 8, dtype=np.float32).reshape(4, 4) / 4,
        image: np.arange(16, dtype=np.float32).reshape(1, 4, 4, 1),
    }
    return [np.array(v).round(4).tolist() for v in s.run([y, grad, turned], feed)]


def blocks(s: tf.Session) -> object:
    """Two that wait for each other: a step ends only if they run at the same time."""
    x = tf.placeholder(tf.float32, [2])
    both = op["Meet"](x, party="p") + op["Meet"](x * 2.0, party="p")
    return s.run(both, {x: [1.0, 2.0]}).tolist()


def decisions(s: tf.Session) -> object:
    """What `explain` says of folding, merging, fusing and placement."""
    c = tf.constant([1.0, 2.0])
    x = tf.placeholder(tf.float32, [2])
    folded = op["Bend"](op["Tag"](c))
    merged = op["Bend"](x + 1.0) + op["Bend"](x + 1.0)
    fused = tf.exp(op["Bend"](op["Tag"](x)) * 3.0)
    rows = s.explain([folded, merged, fused], {x: [1.0, 2.0]}).rows
    s.run([folded, merged, fused], {x: [1.0, 2.0]})
    left = [r.op for r in rows if r.how not in ("removed", "fused")]
    return {
        "tags": left.count("own>Tag"),
        "bends": sum(r.op == "own>Bend" and r.how != "removed" for r in rows),
        "in_cluster": any("own>Bend" in r.op and r.how == "fused" for r in rows),
    }


def main() -> None:
    which = {f.__name__: f for f in (effects, state, draws, alias, blocks, decisions)}[sys.argv[1]]
    found = []
    for passes in (True, False):
        with tf.Graph().as_default(), session(passes) as s:
            found.append(which(s))
    print(json.dumps(found))


main()
