"""Batch normalization with tf.cond on a phase placeholder and moving averages by EMA."""
import numpy as np
import opdock as tf


def batch_norm(x, n_out, phase_train, scope='bn'):
    with tf.variable_scope(scope):
        beta = tf.Variable(tf.constant(0.0, shape=[n_out]), name='beta', trainable=True)
        gamma = tf.Variable(tf.constant(1.0, shape=[n_out]), name='gamma', trainable=True)
        batch_mean, batch_var = tf.nn.moments(x, [0, 1, 2], name='moments')
        ema = tf.train.ExponentialMovingAverage(decay=0.5)

        def mean_var_with_update():
            ema_apply_op = ema.apply([batch_mean, batch_var])
            with tf.control_dependencies([ema_apply_op]):
                return tf.identity(batch_mean), tf.identity(batch_var)

        mean, var = tf.cond(phase_train, mean_var_with_update,
                            lambda: (ema.average(batch_mean), ema.average(batch_var)))
        normed = tf.nn.batch_normalization(x, mean, var, beta, gamma, 1e-3)
    return normed, mean, var


def fused_bn(x, is_training, name='fused'):
    """The other way of writing it: get_variable and assign_moving_average by hand."""
    with tf.variable_scope(name):
        c = x.get_shape()[-1:]
        moving_mean = tf.get_variable('mean', c, initializer=tf.zeros_initializer(),
                                      trainable=False)
        moving_var = tf.get_variable('var', c, initializer=tf.ones_initializer(),
                                     trainable=False)
        scale = tf.get_variable('scale', c, initializer=tf.ones_initializer())
        offset = tf.get_variable('offset', c, initializer=tf.zeros_initializer())
        if is_training:
            y, mean, var = tf.nn.fused_batch_norm(x, scale, offset, is_training=True)
            for moving, value in ((moving_mean, mean), (moving_var, var)):
                tf.add_to_collection(tf.GraphKeys.UPDATE_OPS,
                                     tf.assign_sub(moving, 0.5 * (moving - value)))
            return y
        return tf.nn.fused_batch_norm(x, scale, offset, moving_mean, moving_var,
                                      is_training=False)[0]


np.random.seed(0)
tf.set_random_seed(0)
images = (np.random.randn(16, 5, 5, 2) * [2.0, 0.5] + [3.0, -1.0]).astype(np.float32)
targets = (images.mean(axis=(1, 2)) > images.mean(axis=(0, 1, 2))).astype(np.float32)

x = tf.placeholder(tf.float32, [None, 5, 5, 2])
t = tf.placeholder(tf.float32, [None, 2])
phase_train = tf.placeholder(tf.bool, name='phase_train')
normed, mean, var = batch_norm(x, 2, phase_train)
with tf.variable_scope('model') as vs:
    train_fused = fused_bn(x, True)
with tf.variable_scope(vs, reuse=True):
    test_fused = fused_bn(x, False)

pooled = tf.reduce_mean(tf.nn.relu(train_fused), axis=[1, 2])
w = tf.get_variable('w', [2, 2])
loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(
    logits=tf.matmul(pooled, w) - 0.5, labels=t))
update_ops = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
with tf.control_dependencies(update_ops):
    train_op = tf.train.AdamOptimizer(0.1).minimize(loss)

with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    by_batch, m1, v1 = sess.run([normed, mean, var], {x: images, phase_train: True})
    for _ in range(12):
        sess.run(normed, {x: images, phase_train: True})
    by_average, m2, v2 = sess.run([normed, mean, var], {x: images, phase_train: False})
    frozen = sess.run(mean, {x: images * 10, phase_train: False})
    losses = []
    for _ in range(60):
        l, _ = sess.run([loss, train_op], {x: images, t: targets})
        losses.append(l)
    with tf.variable_scope('model/fused', reuse=True):
        moving = sess.run([tf.get_variable('mean'), tf.get_variable('var')])
    train_out, test_out = sess.run([train_fused, test_fused], {x: images})
    print('loss %.3f -> %.3f' % (losses[0], losses[-1]), 'means', m1, m2)
