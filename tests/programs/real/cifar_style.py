"""The skeleton of the CIFAR-10 tutorial: weight decay, loss collections, LRN, averages, schedule."""
from __future__ import absolute_import, division, print_function

import re

import numpy as np
import opdock as tf

BATCH, SIDE, NUM_CLASSES = 32, 8, 5
MOVING_AVERAGE_DECAY = 0.9
INITIAL_LEARNING_RATE = 0.1
TOWER_NAME = 'tower'


def _activation_summary(x):
    tensor_name = re.sub('%s_[0-9]*/' % TOWER_NAME, '', x.op.name)
    tf.summary.histogram(tensor_name + '/activations', x)
    tf.summary.scalar(tensor_name + '/sparsity', tf.nn.zero_fraction(x))


def _variable_on_cpu(name, shape, initializer):
    with tf.device('/cpu:0'):
        var = tf.get_variable(name, shape, initializer=initializer, dtype=tf.float32)
    return var


def _variable_with_weight_decay(name, shape, stddev, wd):
    var = _variable_on_cpu(
        name, shape, tf.truncated_normal_initializer(stddev=stddev, dtype=tf.float32))
    if wd is not None:
        weight_decay = tf.multiply(tf.nn.l2_loss(var), wd, name='weight_loss')
        tf.add_to_collection('losses', weight_decay)
    return var


def inference(images):
    with tf.variable_scope('conv1') as scope:
        kernel = _variable_with_weight_decay('weights', shape=[3, 3, 3, 12], stddev=0.15, wd=None)
        conv = tf.nn.conv2d(images, kernel, [1, 1, 1, 1], padding='SAME')
        biases = _variable_on_cpu('biases', [12], tf.constant_initializer(0.0))
        conv1 = tf.nn.relu(tf.nn.bias_add(conv, biases), name=scope.name)
        _activation_summary(conv1)
    pool1 = tf.nn.max_pool(conv1, ksize=[1, 3, 3, 1], strides=[1, 2, 2, 1],
                           padding='SAME', name='pool1')
    norm1 = tf.nn.lrn(pool1, 4, bias=1.0, alpha=0.001 / 9.0, beta=0.75, name='norm1')
    with tf.variable_scope('local3') as scope:
        reshape = tf.reshape(norm1, [BATCH, -1])
        dim = reshape.get_shape()[1].value
        weights = _variable_with_weight_decay('weights', shape=[dim, 24], stddev=0.08, wd=0.004)
        biases = _variable_on_cpu('biases', [24], tf.constant_initializer(0.1))
        local3 = tf.nn.relu(tf.matmul(reshape, weights) + biases, name=scope.name)
        _activation_summary(local3)
    with tf.variable_scope('softmax_linear') as scope:
        weights = _variable_with_weight_decay('weights', [24, NUM_CLASSES], stddev=0.1, wd=0.0)
        biases = _variable_on_cpu('biases', [NUM_CLASSES], tf.constant_initializer(0.0))
        return tf.add(tf.matmul(local3, weights), biases, name=scope.name)


def loss(logits, labels):
    labels = tf.cast(labels, tf.int64)
    cross_entropy = tf.nn.sparse_softmax_cross_entropy_with_logits(
        labels=labels, logits=logits, name='cross_entropy_per_example')
    cross_entropy_mean = tf.reduce_mean(cross_entropy, name='cross_entropy')
    tf.add_to_collection('losses', cross_entropy_mean)
    return tf.add_n(tf.get_collection('losses'), name='total_loss')


def _add_loss_summaries(total_loss):
    loss_averages = tf.train.ExponentialMovingAverage(0.9, name='avg')
    losses = tf.get_collection('losses')
    loss_averages_op = loss_averages.apply(losses + [total_loss])
    for l in losses + [total_loss]:
        tf.summary.scalar(l.op.name + ' (raw)', l)
        tf.summary.scalar(l.op.name, loss_averages.average(l))
    return loss_averages_op


def train(total_loss, global_step):
    lr = tf.train.exponential_decay(INITIAL_LEARNING_RATE, global_step, 20, 0.5, staircase=True)
    tf.summary.scalar('learning_rate', lr)
    loss_averages_op = _add_loss_summaries(total_loss)
    with tf.control_dependencies([loss_averages_op]):
        opt = tf.train.GradientDescentOptimizer(lr)
        grads = opt.compute_gradients(total_loss)
    apply_gradient_op = opt.apply_gradients(grads, global_step=global_step)
    for var in tf.trainable_variables():
        tf.summary.histogram(var.op.name, var)
    for grad, var in grads:
        if grad is not None:
            tf.summary.histogram(var.op.name + '/gradients', grad)
    averages = tf.train.ExponentialMovingAverage(MOVING_AVERAGE_DECAY, global_step)
    variables_averages_op = averages.apply(tf.trainable_variables())
    with tf.control_dependencies([apply_gradient_op, variables_averages_op]):
        train_op = tf.no_op(name='train')
    return train_op, lr, averages


rng = np.random.RandomState(5)
prototypes = rng.rand(NUM_CLASSES, SIDE, SIDE, 3)


def batch():
    labels = rng.randint(NUM_CLASSES, size=BATCH)
    return prototypes[labels] + 0.1 * rng.randn(BATCH, SIDE, SIDE, 3), labels


with tf.Graph().as_default() as graph:
    tf.set_random_seed(11)
    global_step = tf.Variable(0, trainable=False, name='global_step')
    images = tf.placeholder(tf.float32, [BATCH, SIDE, SIDE, 3])
    labels = tf.placeholder(tf.int32, [BATCH])
    logits = inference(images)
    total_loss = loss(logits, labels)
    train_op, lr, averages = train(total_loss, global_step)
    top_1 = tf.nn.in_top_k(logits, labels, 1)
    summary_op = tf.summary.merge_all()
    summary_names = tf.get_collection(tf.GraphKeys.SUMMARIES)
    saver = tf.train.Saver(tf.global_variables())
    sess = tf.Session(config=tf.ConfigProto(log_device_placement=False))
    sess.run(tf.global_variables_initializer())
    history = []
    for step in range(60):
        xs, ys = batch()
        _, loss_value = sess.run([train_op, total_loss], feed_dict={images: xs, labels: ys})
        assert not np.isnan(loss_value), 'Model diverged with loss = NaN'
        history.append(loss_value)
    xs, ys = batch()
    precision = np.sum(sess.run(top_1, {images: xs, labels: ys})) / BATCH
    summary_text = sess.run(summary_op, {images: xs, labels: ys})
    final_lr, final_step = sess.run([lr, global_step])
    shadow_names = sorted(averages.variables_to_restore())
    print('loss %.3f -> %.3f, precision @ 1 = %.3f' % (history[0], history[-1], precision))
