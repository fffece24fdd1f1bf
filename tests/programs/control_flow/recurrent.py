"""A recurrent network as a loop over time in Python, beside `tf.nn.dynamic_rnn`, and trained."""

import numpy as np

import opdock as tf

BATCH, LONGEST, UNITS = 16, 8, 12


def unroll(cell, inputs, lengths):
    """The outputs of a cell, zeros behind the ends, and its last states."""
    steps = tf.transpose(inputs, [1, 0, 2])
    state = cell.zero_state(BATCH, tf.float32)
    outputs = tf.TensorArray(tf.float32, size=tf.shape(steps)[0])
    for time in tf.range(tf.reduce_max(lengths)):
        output, following = cell(steps[time], state)
        running = time < lengths
        state = tf.where(running, following, state)
        outputs = outputs.write(time, tf.where(running, output, tf.zeros_like(output)))
    return tf.transpose(outputs.stack(), [1, 0, 2]), state


inputs = tf.placeholder(tf.float32, [BATCH, LONGEST, 1])
lengths = tf.placeholder(tf.int32, [BATCH])
wanted = tf.placeholder(tf.float32, [BATCH])

cell = tf.nn.rnn_cell.GRUCell(UNITS)
cell.build(tf.TensorShape([BATCH, 1]))
outputs, state = tf.autograph.to_graph(unroll)(cell, inputs, lengths)
same_outputs, same_state = tf.nn.dynamic_rnn(cell, inputs, lengths, dtype=tf.float32)

guess = tf.layers.dense(state, 1)[:, 0]
loss = tf.reduce_mean(tf.square(guess - wanted))
step = tf.train.AdamOptimizer(0.02).minimize(loss)
slopes = [tf.gradients(tf.reduce_sum(s), cell.trainable_variables) for s in (state, same_state)]


def batch(rng):
    values = rng.uniform(-1, 1, (BATCH, LONGEST, 1))
    ends = rng.randint(1, LONGEST + 1, BATCH)
    ends[0] = LONGEST
    sums = [values[i, :end, 0].sum() for i, end in enumerate(ends)]
    return {inputs: values, lengths: ends, wanted: sums}


rng = np.random.RandomState(0)
losses = []
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    both = session.run([outputs, state, same_outputs, same_state, slopes], batch(rng))
    for _ in range(150):
        losses.append(session.run([loss, step], batch(rng))[0])
print("Loss:", np.mean(losses[-10:]))
