"""A character RNN unrolled by a Python loop over one cell with shared variables."""
import numpy as np
import opdock as tf

data = "hello world, hello there, " * 8
chars = sorted(set(data))
data_size, vocab_size = len(data), len(chars)
char_to_ix = {ch: i for i, ch in enumerate(chars)}
ix_to_char = {i: ch for i, ch in enumerate(chars)}

hidden_size, seq_length, learning_rate = 32, 13, 2e-2


def one_hot(v):
    return np.eye(vocab_size)[v]


tf.set_random_seed(2)
inputs = tf.placeholder(shape=[None, vocab_size], dtype=tf.float32, name="inputs")
targets = tf.placeholder(shape=[None, vocab_size], dtype=tf.float32, name="targets")
init_state = tf.placeholder(shape=[1, hidden_size], dtype=tf.float32, name="state")
initializer = tf.random_normal_initializer(stddev=0.1)

with tf.variable_scope("RNN") as scope:
    hs_t = init_state
    ys = []
    for t, xs_t in enumerate(tf.split(inputs, seq_length, axis=0)):
        if t > 0:
            scope.reuse_variables()  # Reuse variables
        Wxh = tf.get_variable("Wxh", [vocab_size, hidden_size], initializer=initializer)
        Whh = tf.get_variable("Whh", [hidden_size, hidden_size], initializer=initializer)
        Why = tf.get_variable("Why", [hidden_size, vocab_size], initializer=initializer)
        bh = tf.get_variable("bh", [hidden_size], initializer=initializer)
        by = tf.get_variable("by", [vocab_size], initializer=initializer)
        hs_t = tf.tanh(tf.matmul(xs_t, Wxh) + tf.matmul(hs_t, Whh) + bh)
        ys_t = tf.matmul(hs_t, Why) + by
        ys.append(ys_t)

hprev = hs_t
output_softmax = tf.nn.softmax(ys[-1])  # Get softmax for sampling
outputs = tf.concat(ys, axis=0)
loss = tf.reduce_mean(
    tf.nn.softmax_cross_entropy_with_logits(labels=targets, logits=outputs))

minimizer = tf.train.AdamOptimizer(learning_rate)
grads_and_vars = minimizer.compute_gradients(loss)

# Gradient clipping
grad_clipping = tf.constant(5.0, name="grad_clipping")
clipped_grads_and_vars = []
for grad, var in grads_and_vars:
    clipped_grad = tf.clip_by_value(grad, -grad_clipping, grad_clipping)
    clipped_grads_and_vars.append((clipped_grad, var))
updates = minimizer.apply_gradients(clipped_grads_and_vars)

sess = tf.Session()
sess.run(tf.global_variables_initializer())
n_variables = len(tf.trainable_variables())

n, p, losses = 0, 0, []
hprev_val = np.zeros([1, hidden_size])
while n < 250:
    if p + seq_length + 1 >= len(data) or n == 0:
        hprev_val = np.zeros([1, hidden_size])
        p = 0  # reset
    input_vals = one_hot([char_to_ix[ch] for ch in data[p:p + seq_length]])
    target_vals = one_hot([char_to_ix[ch] for ch in data[p + 1:p + seq_length + 1]])
    hprev_val, loss_val, _ = sess.run([hprev, loss, updates], feed_dict={
        inputs: input_vals, targets: target_vals, init_state: hprev_val})
    losses.append(loss_val)
    p += seq_length
    n += 1

# Greedy sampling: the sequence is always seq_length long
text = data[:seq_length]
for _ in range(26):
    window = one_hot([char_to_ix[ch] for ch in text[-seq_length:]])
    prob = sess.run(output_softmax, {inputs: window, init_state: np.zeros([1, hidden_size])})
    text += ix_to_char[int(np.argmax(prob.ravel()))]
print('iter: %d, loss: %f' % (n, losses[-1]))
print('----\n %s \n----' % (text,))
sess.close()
