"""Capsules with routing by agreement: tile, five-dimensional matmul, a loop in Python, margin loss."""
import numpy as np
import opdock as tf

np.random.seed(42)
tf.set_random_seed(42)
N_CAPS1, DIMS1, N_CAPS2, DIMS2 = 8, 4, 3, 6


def squash(s, axis=-1, epsilon=1e-7, name=None):
    with tf.name_scope(name, default_name="squash"):
        squared_norm = tf.reduce_sum(tf.square(s), axis=axis, keep_dims=True)
        safe_norm = tf.sqrt(squared_norm + epsilon)
        squash_factor = squared_norm / (1. + squared_norm)
        unit_vector = s / safe_norm
        return squash_factor * unit_vector


def safe_norm(s, axis=-1, epsilon=1e-7, keep_dims=False, name=None):
    with tf.name_scope(name, default_name="safe_norm"):
        squared_norm = tf.reduce_sum(tf.square(s), axis=axis, keep_dims=keep_dims)
        return tf.sqrt(squared_norm + epsilon)


X = tf.placeholder(shape=[None, N_CAPS1 * DIMS1], dtype=tf.float32, name="X")
y = tf.placeholder(shape=[None], dtype=tf.int64, name="y")
caps1_raw = tf.reshape(X, [-1, N_CAPS1, DIMS1], name="caps1_raw")
caps1_output = squash(caps1_raw, name="caps1_output")

W_init = tf.random_normal(shape=(1, N_CAPS1, N_CAPS2, DIMS2, DIMS1), stddev=0.5, name="W_init")
W = tf.Variable(W_init, name="W")
batch_size = tf.shape(X)[0]
W_tiled = tf.tile(W, [batch_size, 1, 1, 1, 1], name="W_tiled")
expanded = tf.expand_dims(caps1_output, -1, name="caps1_output_expanded")
caps1_tile = tf.expand_dims(expanded, 2, name="caps1_output_tile")
caps1_tiled = tf.tile(caps1_tile, [1, 1, N_CAPS2, 1, 1], name="caps1_output_tiled")
caps2_predicted = tf.matmul(W_tiled, caps1_tiled, name="caps2_predicted")

raw_weights = tf.zeros([batch_size, N_CAPS1, N_CAPS2, 1, 1], dtype=np.float32, name="raw_weights")
for round_ in range(2):
    with tf.name_scope("routing_%d" % round_):
        routing_weights = tf.nn.softmax(raw_weights, dim=2, name="routing_weights")
        weighted = tf.multiply(routing_weights, caps2_predicted, name="weighted_predictions")
        weighted_sum = tf.reduce_sum(weighted, axis=1, keep_dims=True, name="weighted_sum")
        caps2_output = squash(weighted_sum, axis=-2)
        caps2_tiled = tf.tile(caps2_output, [1, N_CAPS1, 1, 1, 1])
        agreement = tf.matmul(caps2_predicted, caps2_tiled, transpose_a=True, name="agreement")
        raw_weights = tf.add(raw_weights, agreement)

y_proba = safe_norm(caps2_output, axis=-2, name="y_proba")
y_pred = tf.squeeze(tf.argmax(y_proba, axis=2), axis=[1, 2], name="y_pred")
T = tf.one_hot(y, depth=N_CAPS2, name="T")
norm = safe_norm(caps2_output, axis=-2, keep_dims=True)
present_error = tf.reshape(tf.square(tf.maximum(0., 0.9 - norm)), shape=(-1, N_CAPS2))
absent_error = tf.reshape(tf.square(tf.maximum(0., norm - 0.1)), shape=(-1, N_CAPS2))
L = tf.add(T * present_error, 0.5 * (1.0 - T) * absent_error, name="L")
margin_loss = tf.reduce_mean(tf.reduce_sum(L, axis=1), name="margin_loss")

mask_with_labels = tf.placeholder_with_default(False, shape=(), name="mask_with_labels")
targets = tf.cond(mask_with_labels, lambda: y, lambda: y_pred, name="reconstruction_targets")
mask = tf.reshape(tf.one_hot(targets, depth=N_CAPS2), [-1, 1, N_CAPS2, 1, 1])
decoder_input = tf.reshape(tf.multiply(caps2_output, mask), [-1, N_CAPS2 * DIMS2])
with tf.name_scope("decoder"):
    hidden = tf.layers.dense(decoder_input, 16, activation=tf.nn.relu, name="hidden")
    decoded = tf.layers.dense(hidden, N_CAPS1 * DIMS1, name="decoder_output")
reconstruction_loss = tf.reduce_mean(tf.squared_difference(X, decoded))
loss = tf.add(margin_loss, 0.05 * reconstruction_loss, name="loss")
accuracy = tf.reduce_mean(tf.cast(tf.equal(y, y_pred), tf.float32), name="accuracy")
training_op = tf.train.AdamOptimizer().minimize(loss, name="training_op")

prototypes = np.random.randn(3, N_CAPS1 * DIMS1)
with tf.Session() as sess:
    tf.global_variables_initializer().run()
    losses = []
    for iteration in range(150):
        labels = np.random.randint(3, size=32)
        batch = prototypes[labels] + 0.3 * np.random.randn(32, N_CAPS1 * DIMS1)
        _, l = sess.run([training_op, loss], feed_dict={X: batch, y: labels,
                                                        mask_with_labels: True})
        losses.append(l)
    final_accuracy, rec = sess.run([accuracy, decoded], {X: batch, y: labels})
print("loss %.4f -> %.4f, accuracy %.3f" % (losses[0], losses[-1], final_accuracy))
