"""Multi-head attention with masking and layer norm written by hand; learns to reverse a sequence."""
import numpy as np
import opdock as tf

VOCAB, LENGTH, D, HEADS = 8, 6, 24, 2
batch_size = 48


def normalize(inputs, epsilon=1e-8, scope="ln", reuse=None):
    with tf.variable_scope(scope, reuse=reuse):
        params_shape = inputs.get_shape()[-1:]
        mean, variance = tf.nn.moments(inputs, [-1], keep_dims=True)
        beta = tf.Variable(tf.zeros(params_shape), name='beta')
        gamma = tf.Variable(tf.ones(params_shape), name='gamma')
        normalized = (inputs - mean) / ((variance + epsilon) ** (.5))
        return gamma * normalized + beta


def project(x, n, name):
    with tf.variable_scope(name):
        w = tf.get_variable('kernel', [x.shape[-1], n],
                            initializer=tf.contrib.layers.xavier_initializer())
        return tf.tensordot(x, w, axes=1)


def multihead_attention(queries, keys, lengths, scope="attention", reuse=None):
    with tf.variable_scope(scope, reuse=reuse):
        Q, K, V = (project(t, D, n) for t, n in ((queries, 'q'), (keys, 'k'), (keys, 'v')))
        # (h*N, T, D/h)
        Q_, K_, V_ = (tf.concat(tf.split(t, HEADS, axis=2), axis=0) for t in (Q, K, V))
        weights = tf.matmul(Q_, tf.transpose(K_, [0, 2, 1]))
        weights = weights / (K_.get_shape().as_list()[-1] ** 0.5)
        # Padded keys get no attention
        key_masks = tf.tile(tf.sequence_mask(lengths, LENGTH), [HEADS, 1])
        key_masks = tf.tile(tf.expand_dims(key_masks, 1), [1, tf.shape(queries)[1], 1])
        paddings = tf.ones_like(weights) * (-2 ** 32 + 1)
        weights = tf.where(key_masks, weights, paddings)
        alignments = tf.nn.softmax(weights)
        outputs = tf.matmul(alignments, V_)
        outputs = tf.concat(tf.split(outputs, HEADS, axis=0), axis=2)
        outputs += queries
        return normalize(outputs), alignments


def reversed_batch(n):
    lengths = np.random.randint(3, LENGTH + 1, size=n)
    x = np.zeros((n, LENGTH), np.int32)
    y = np.zeros((n, LENGTH), np.int32)
    for i, l in enumerate(lengths):
        x[i, :l] = np.random.randint(1, VOCAB, size=l)
        y[i, :l] = x[i, :l][::-1]
    return x, y, lengths


np.random.seed(0)
tf.set_random_seed(0)
x = tf.placeholder(tf.int32, shape=(None, LENGTH))
y = tf.placeholder(tf.int32, shape=(None, LENGTH))
lengths = tf.placeholder(tf.int32, shape=(None,))
with tf.variable_scope("embed", initializer=tf.random_normal_initializer(stddev=0.3)):
    table = tf.get_variable("table", [VOCAB, D])
    positions = tf.get_variable("positions", [LENGTH, D])
    backwards = tf.get_variable("backwards", [LENGTH + 1, D])
    from_end = tf.maximum(tf.expand_dims(lengths, 1) - tf.range(LENGTH), 0)
    keys = tf.nn.embedding_lookup(table, x) * (D ** 0.5) + positions
    queries = tf.nn.embedding_lookup(backwards, from_end)
context, alignments = multihead_attention(queries, keys, lengths)
logits = project(tf.nn.relu(project(context, 2 * D, 'ff')), VOCAB, 'out')
istarget = tf.to_float(tf.not_equal(y, 0))
preds = tf.to_int32(tf.argmax(logits, axis=-1))
acc = tf.reduce_sum(tf.to_float(tf.equal(preds, y)) * istarget) / tf.reduce_sum(istarget)
loss = tf.nn.softmax_cross_entropy_with_logits_v2(
    logits=logits, labels=tf.one_hot(y, depth=VOCAB))
mean_loss = tf.reduce_sum(loss * istarget) / tf.reduce_sum(istarget)
optimizer = tf.train.AdamOptimizer(learning_rate=0.01, beta1=0.9, beta2=0.98, epsilon=1e-8)
train_op = optimizer.minimize(mean_loss)

with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    accuracies = []
    for step in range(200):
        bx, by, bl = reversed_batch(batch_size)
        _, a, l = sess.run([train_op, acc, mean_loss], {x: bx, y: by, lengths: bl})
        accuracies.append(a)
    print("accuracy %.2f -> %.2f" % (accuracies[0], accuracies[-1]))
    bx, by, bl = reversed_batch(8)
    attention_weights = sess.run(alignments, {x: bx, lengths: bl})
