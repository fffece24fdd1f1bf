"""tf.layers, tf.losses and tf.metrics: conv net with batch normalization, UPDATE_OPS and dropout."""
import numpy as np
import opdock as tf

tf.logging.set_verbosity(tf.logging.INFO)
np.random.seed(0)


def cnn_model_fn(features, labels, training):
    input_layer = tf.reshape(features, [-1, 12, 12, 1])
    conv1 = tf.layers.conv2d(inputs=input_layer, filters=8, kernel_size=[3, 3], padding="same",
                             activation=tf.nn.relu, name='conv1')
    pool1 = tf.layers.max_pooling2d(inputs=conv1, pool_size=[2, 2], strides=2)
    conv2 = tf.layers.conv2d(pool1, 12, 3, use_bias=False,
                             kernel_regularizer=tf.contrib.layers.l2_regularizer(1e-4))
    norm = tf.layers.batch_normalization(conv2, training=training, momentum=0.8)
    flat = tf.layers.flatten(tf.nn.relu(norm))
    dense = tf.layers.dense(flat, units=16, activation=tf.nn.relu,
                            kernel_initializer=tf.truncated_normal_initializer(stddev=0.1))
    dropout = tf.layers.dropout(inputs=dense, rate=0.2, training=training)
    logits = tf.layers.dense(inputs=dropout, units=3)
    predictions = {"classes": tf.argmax(input=logits, axis=1),
                   "probabilities": tf.nn.softmax(logits, name="softmax_tensor")}
    tf.losses.sparse_softmax_cross_entropy(labels=labels, logits=logits)
    loss = tf.losses.get_total_loss()
    update_ops = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
    with tf.control_dependencies(update_ops):
        train_op = tf.train.AdamOptimizer(0.01).minimize(
            loss=loss, global_step=tf.train.get_or_create_global_step())
    accuracy, accuracy_op = tf.metrics.accuracy(labels=labels, predictions=predictions["classes"])
    return predictions, loss, train_op, accuracy, accuracy_op


def crosses(n):
    """A vertical line, a horizontal line, or both."""
    pictures = np.random.rand(n, 12, 12) * 0.5
    labels = np.random.randint(3, size=n)
    for p, label in zip(pictures, labels):
        r, c = np.random.randint(2, 10, size=2)
        if label != 0:
            p[r, :] += 0.8
        if label != 1:
            p[:, c] += 0.8
    return pictures, labels


tf.set_random_seed(0)
features = tf.placeholder(tf.float32, [None, 12, 12])
labels = tf.placeholder(tf.int64, [None])
training = tf.placeholder_with_default(False, [], name='training')
predictions, loss, train_op, accuracy, accuracy_op = cnn_model_fn(features, labels, training)
n_params = int(np.sum([np.prod(v.get_shape().as_list()) for v in tf.trainable_variables()]))

losses = []
with tf.Session() as sess:
    sess.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
    for i in range(100):
        xs, ys = crosses(32)
        _, l = sess.run([train_op, loss], {features: xs, labels: ys, training: True})
        losses.append(l)
        if i % 50 == 0:
            tf.logging.info('step %d loss %.3f', i, l)
    for _ in range(4):
        xs, ys = crosses(50)
        sess.run(accuracy_op, {features: xs, labels: ys})
    final = sess.run(accuracy)
    step = sess.run(tf.train.get_global_step())
    shape = sess.run(predictions, {features: xs})["probabilities"].shape
names = [v.name for v in tf.global_variables() if 'Adam' not in v.name]
print('accuracy %.3f with %d parameters' % (final, n_params))
