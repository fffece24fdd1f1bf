"""An LSTM written with tf.while_loop and TensorArrays; trained through the loop on a running parity."""
import numpy as np
import opdock as tf

np.random.seed(0)
tf.set_random_seed(0)
BATCH, HIDDEN = 32, 12

x = tf.placeholder(tf.float32, [None, BATCH, 1], name='x')    # time major
y = tf.placeholder(tf.float32, [None, BATCH], name='y')
time_steps = tf.shape(x)[0]

with tf.variable_scope('lstm'):
    kernel = tf.get_variable('kernel', [1 + HIDDEN, 4 * HIDDEN],
                             initializer=tf.orthogonal_initializer(gain=1.0))
    bias = tf.get_variable('bias', [4 * HIDDEN], initializer=tf.zeros_initializer())
    out_w = tf.get_variable('out_w', [HIDDEN, 1])
    out_b = tf.get_variable('out_b', [1], initializer=tf.zeros_initializer())


def cell(inputs, c, h):
    gates = tf.nn.bias_add(tf.matmul(tf.concat([inputs, h], 1), kernel), bias)
    i, j, f, o = tf.split(value=gates, num_or_size_splits=4, axis=1)
    new_c = c * tf.sigmoid(f + 1.0) + tf.sigmoid(i) * tf.tanh(j)
    return new_c, tf.tanh(new_c) * tf.sigmoid(o)


inputs_ta = tf.TensorArray(tf.float32, size=time_steps).unstack(x)
outputs_ta = tf.TensorArray(dtype=tf.float32, size=time_steps, dynamic_size=False)


def loop_body(t, c, h, outputs):
    c, h = cell(inputs_ta.read(t), c, h)
    return t + 1, c, h, outputs.write(t, h)


zero = tf.zeros([BATCH, HIDDEN])
_, _, last, outputs_ta = tf.while_loop(
    cond=lambda t, *_: tf.less(t, time_steps), body=loop_body,
    loop_vars=(tf.constant(0), zero, zero, outputs_ta), swap_memory=True)
outputs = outputs_ta.stack()
outputs.set_shape([None, BATCH, HIDDEN])
logits = tf.squeeze(tf.tensordot(outputs, out_w, [[2], [0]]) + out_b, axis=2)
loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=y, logits=logits))
accuracy = tf.reduce_mean(tf.to_float(tf.equal(logits > 0, y > 0.5)))
optimizer = tf.train.AdamOptimizer(0.02)
grads, variables = zip(*optimizer.compute_gradients(loss))
grads, _ = tf.clip_by_global_norm(grads, 1.0)
train_op = optimizer.apply_gradients(zip(grads, variables))

# The same three steps without a loop
c, h, unrolled = zero, zero, []
for t in range(3):
    c, h = cell(x[t], c, h)
    unrolled.append(h)
unrolled_logits = tf.squeeze(tf.tensordot(tf.stack(unrolled), out_w, axes=1) + out_b, 2)
unrolled_loss = tf.reduce_mean(
    tf.nn.sigmoid_cross_entropy_with_logits(labels=y, logits=unrolled_logits))
loop_grads = tf.gradients(loss, [kernel, x])
unrolled_grads = tf.gradients(unrolled_loss, [kernel, x])


def parity(length):
    bits = np.random.randint(2, size=(length, BATCH))
    return bits[..., None], np.cumsum(bits, axis=0) % 2


with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    bits, sums = parity(3)
    compared = sess.run([loop_grads, unrolled_grads], {x: bits, y: sums})
    losses = []
    for step in range(150):
        bits, sums = parity(np.random.randint(3, 7))
        _, l = sess.run([train_op, loss], {x: bits, y: sums})
        losses.append(l)
    bits, sums = parity(8)
    final = sess.run(accuracy, {x: bits, y: sums})
print('loss %.3f -> %.3f, accuracy on longer ones %.2f' % (losses[0], losses[-1], final))
