"""A two-layer perceptron that writes everything it can to TensorBoard.

Flags, tf.app.run, name scopes, variable summaries, dropout, train and test writers, and a full
trace every now and then.
"""
from __future__ import absolute_import, division, print_function

import os

import numpy as np
import opdock as tf
from opdock.python.client import timeline

flags = tf.app.flags
FLAGS = flags.FLAGS
flags.DEFINE_integer('max_steps', 60, 'Number of steps to run trainer.')
flags.DEFINE_float('learning_rate', 0.03, 'Initial learning rate')
flags.DEFINE_float('keep', 0.9, 'Keep probability for training dropout.')
flags.DEFINE_boolean('fake_data', False, 'unused')
flags.DEFINE_string('log_dir', 'mlp_logs', 'Summaries log directory')


def make_data(n, seed):
    r = np.random.RandomState(seed)
    xs = r.uniform(-1, 1, (n, 16)).astype(np.float32)
    return xs, (xs[:, 0] * xs[:, 1] > 0).astype(np.int64) + 2 * (xs[:, 2] > 0)


def variable_summaries(var):
    """Attach a lot of summaries to a Tensor."""
    with tf.name_scope('summaries'):
        mean = tf.reduce_mean(var)
        tf.summary.scalar('mean', mean)
        with tf.name_scope('stddev'):
            stddev = tf.sqrt(tf.reduce_mean(tf.square(var - mean)))
        tf.summary.scalar('stddev', stddev)
        tf.summary.scalar('max', tf.reduce_max(var))
        tf.summary.scalar('min', tf.reduce_min(var))
        tf.summary.histogram('histogram', var)


def nn_layer(input_tensor, input_dim, output_dim, layer_name, act=tf.nn.relu):
    with tf.name_scope(layer_name):
        with tf.name_scope('weights'):
            weights = tf.Variable(tf.truncated_normal([input_dim, output_dim], stddev=0.2))
            variable_summaries(weights)
        with tf.name_scope('biases'):
            biases = tf.Variable(tf.constant(0.1, shape=[output_dim]))
            variable_summaries(biases)
        with tf.name_scope('Wx_plus_b'):
            preactivate = tf.matmul(input_tensor, weights) + biases
            tf.summary.histogram('pre_activations', preactivate)
        activations = act(preactivate, name='activation')
        tf.summary.histogram('activations', activations)
        return activations


def train():
    tf.set_random_seed(3)
    train_x, train_y = make_data(512, 0)
    test_x, test_y = make_data(256, 1)
    sess = tf.InteractiveSession(config=tf.ConfigProto(allow_soft_placement=True))

    with tf.name_scope('input'):
        x = tf.placeholder(tf.float32, [None, 16], name='x-input')
        y_ = tf.placeholder(tf.int64, [None], name='y-input')
    with tf.name_scope('input_reshape'):
        image_shaped_input = tf.reshape(x, [-1, 4, 4, 1])
        tf.summary.image('input', image_shaped_input, 2)

    hidden1 = nn_layer(x, 16, 32, 'layer1')
    with tf.name_scope('dropout'):
        keep_prob = tf.placeholder(tf.float32)
        tf.summary.scalar('dropout_keep_probability', keep_prob)
        dropped = tf.nn.dropout(hidden1, keep_prob)
    y = nn_layer(dropped, 32, 4, 'layer2', act=tf.identity)

    with tf.name_scope('cross_entropy'):
        diff = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y_, logits=y)
        with tf.name_scope('total'):
            cross_entropy = tf.reduce_mean(diff)
    tf.summary.scalar('cross_entropy', cross_entropy)
    with tf.name_scope('train'):
        train_step = tf.train.AdamOptimizer(FLAGS.learning_rate).minimize(cross_entropy)
    with tf.name_scope('accuracy'):
        correct_prediction = tf.equal(tf.argmax(y, 1), y_)
        accuracy = tf.reduce_mean(tf.cast(correct_prediction, tf.float32))
    tf.summary.scalar('accuracy', accuracy)

    merged = tf.summary.merge_all()
    train_writer = tf.summary.FileWriter(FLAGS.log_dir + '/train', sess.graph)
    test_writer = tf.summary.FileWriter(FLAGS.log_dir + '/test')
    tf.global_variables_initializer().run()

    def feed_dict(training):
        k = FLAGS.keep if training else 1.0
        return {x: train_x if training else test_x, y_: train_y if training else test_y,
                keep_prob: k}

    for i in range(FLAGS.max_steps):
        if i % 10 == 0:
            summary, acc, loss = sess.run([merged, accuracy, cross_entropy],
                                          feed_dict=feed_dict(False))
            test_writer.add_summary(summary, i)
            print('Accuracy at step %s: %s loss %s' % (i, acc, loss))
        elif i % 25 == 24:
            run_options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
            run_metadata = tf.RunMetadata()
            summary, _ = sess.run([merged, train_step], feed_dict=feed_dict(True),
                                  options=run_options, run_metadata=run_metadata)
            train_writer.add_run_metadata(run_metadata, 'step%03d' % i)
            train_writer.add_summary(summary, i)
            tl = timeline.Timeline(run_metadata.step_stats)
            with open(os.path.join(FLAGS.log_dir, 'timeline.json'), 'w') as f:
                f.write(tl.generate_chrome_trace_format())
            print('Adding run metadata for', i)
        else:
            summary, _ = sess.run([merged, train_step], feed_dict=feed_dict(True))
            train_writer.add_summary(summary, i)
    train_writer.close()
    test_writer.close()
    sess.close()


def main(_):
    if tf.gfile.Exists(FLAGS.log_dir):
        tf.gfile.DeleteRecursively(FLAGS.log_dir)
    tf.gfile.MakeDirs(FLAGS.log_dir)
    train()


if __name__ == '__main__':
    tf.app.run()
