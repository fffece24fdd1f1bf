"""Convolutional sentence classifier: embeddings, parallel filters, max over time, a Saver and flags."""
from __future__ import print_function

import datetime
import os
import time

import numpy as np
import opdock as tf

tf.flags.DEFINE_integer("embedding_dim", 12, "Dimensionality of character embedding")
tf.flags.DEFINE_string("filter_sizes", "2,3", "Comma-separated filter sizes")
tf.flags.DEFINE_integer("num_filters", 6, "Number of filters per filter size")
tf.flags.DEFINE_float("dropout_keep_prob", 0.8, "Dropout keep probability")
tf.flags.DEFINE_float("l2_reg_lambda", 0.001, "L2 regularization lambda")
tf.flags.DEFINE_boolean("allow_soft_placement", True, "Allow device soft device placement")
FLAGS = tf.flags.FLAGS


class TextCNN(object):
    def __init__(self, sequence_length, num_classes, vocab_size, embedding_size, filter_sizes,
                 num_filters, l2_reg_lambda=0.0):
        self.input_x = tf.placeholder(tf.int32, [None, sequence_length], name="input_x")
        self.input_y = tf.placeholder(tf.float32, [None, num_classes], name="input_y")
        self.dropout_keep_prob = tf.placeholder(tf.float32, name="dropout_keep_prob")
        l2_loss = tf.constant(0.0)
        with tf.device('/cpu:0'), tf.name_scope("embedding"):
            self.W = tf.Variable(
                tf.random_uniform([vocab_size, embedding_size], -1.0, 1.0), name="W")
            self.embedded_chars = tf.nn.embedding_lookup(self.W, self.input_x)
            self.embedded_chars_expanded = tf.expand_dims(self.embedded_chars, -1)
        pooled_outputs = []
        for i, filter_size in enumerate(filter_sizes):
            with tf.name_scope("conv-maxpool-%s" % filter_size):
                filter_shape = [filter_size, embedding_size, 1, num_filters]
                W = tf.Variable(tf.truncated_normal(filter_shape, stddev=0.1), name="W")
                b = tf.Variable(tf.constant(0.1, shape=[num_filters]), name="b")
                conv = tf.nn.conv2d(self.embedded_chars_expanded, W, strides=[1, 1, 1, 1],
                                    padding="VALID", name="conv")
                h = tf.nn.relu(tf.nn.bias_add(conv, b), name="relu")
                pooled = tf.nn.max_pool(h, ksize=[1, sequence_length - filter_size + 1, 1, 1],
                                        strides=[1, 1, 1, 1], padding='VALID', name="pool")
                pooled_outputs.append(pooled)
        num_filters_total = num_filters * len(filter_sizes)
        self.h_pool = tf.concat(pooled_outputs, 3)
        self.h_pool_flat = tf.reshape(self.h_pool, [-1, num_filters_total])
        with tf.name_scope("dropout"):
            self.h_drop = tf.nn.dropout(self.h_pool_flat, self.dropout_keep_prob)
        with tf.name_scope("output"):
            W = tf.get_variable("W", shape=[num_filters_total, num_classes],
                                initializer=tf.contrib.layers.xavier_initializer())
            b = tf.Variable(tf.constant(0.1, shape=[num_classes]), name="b")
            l2_loss += tf.nn.l2_loss(W)
            l2_loss += tf.nn.l2_loss(b)
            self.scores = tf.nn.xw_plus_b(self.h_drop, W, b, name="scores")
            self.predictions = tf.argmax(self.scores, 1, name="predictions")
        with tf.name_scope("loss"):
            losses = tf.nn.softmax_cross_entropy_with_logits(logits=self.scores,
                                                             labels=self.input_y)
            self.loss = tf.reduce_mean(losses) + l2_reg_lambda * l2_loss
        with tf.name_scope("accuracy"):
            correct = tf.equal(self.predictions, tf.argmax(self.input_y, 1))
            self.accuracy = tf.reduce_mean(tf.cast(correct, "float"), name="accuracy")


def sentences(n):
    """Positive when word 3 is followed by word 4 somewhere."""
    x = np.random.randint(1, 10, size=(n, 9))
    y = np.random.randint(2, size=n)
    at = np.random.randint(8, size=n)
    for i in np.flatnonzero(y):
        x[i, at[i]:at[i] + 2] = 3, 4
    y = ((x[:, :-1] == 3) & (x[:, 1:] == 4)).any(axis=1)
    return x, np.eye(2)[y.astype(int)]


def main(argv=None):
    np.random.seed(10)
    with tf.Graph().as_default():
        tf.set_random_seed(10)
        session_conf = tf.ConfigProto(allow_soft_placement=FLAGS.allow_soft_placement,
                                      log_device_placement=False)
        sess = tf.Session(config=session_conf)
        with sess.as_default():
            cnn = TextCNN(9, 2, 10, FLAGS.embedding_dim,
                          list(map(int, FLAGS.filter_sizes.split(","))), FLAGS.num_filters,
                          FLAGS.l2_reg_lambda)
            global_step = tf.Variable(0, name="global_step", trainable=False)
            optimizer = tf.train.AdamOptimizer(1e-2)
            grads_and_vars = optimizer.compute_gradients(cnn.loss)
            train_op = optimizer.apply_gradients(grads_and_vars, global_step=global_step)
            grad_summaries = []
            for g, v in grads_and_vars:
                if g is not None:
                    grad_summaries.append(
                        tf.summary.histogram("{}/grad/hist".format(v.name), g))
                    grad_summaries.append(tf.summary.scalar(
                        "{}/grad/sparsity".format(v.name), tf.nn.zero_fraction(g)))
            out_dir = os.path.abspath(os.path.join(os.path.curdir, "runs", "1"))
            train_summary_op = tf.summary.merge(
                [tf.summary.scalar("loss", cnn.loss), tf.summary.scalar("accuracy", cnn.accuracy),
                 tf.summary.merge(grad_summaries)])
            writer = tf.summary.FileWriter(os.path.join(out_dir, "summaries"), sess.graph)
            checkpoint_prefix = os.path.join(out_dir, "checkpoints", "model")
            if not os.path.exists(os.path.dirname(checkpoint_prefix)):
                os.makedirs(os.path.dirname(checkpoint_prefix))
            saver = tf.train.Saver(tf.global_variables(), max_to_keep=2)
            sess.run(tf.global_variables_initializer())
            for _ in range(160):
                x_batch, y_batch = sentences(64)
                _, step, summaries, loss = sess.run(
                    [train_op, global_step, train_summary_op, cnn.loss],
                    {cnn.input_x: x_batch, cnn.input_y: y_batch,
                     cnn.dropout_keep_prob: FLAGS.dropout_keep_prob})
                writer.add_summary(summaries, step)
                current_step = tf.train.global_step(sess, global_step)
                if current_step % 80 == 0:
                    path = saver.save(sess, checkpoint_prefix, global_step=current_step)
                    print("{}: saved {}".format(datetime.datetime.now().isoformat(), path))
            writer.close()
            x_dev, y_dev = sentences(400)
            accuracy = sess.run(cnn.accuracy, {cnn.input_x: x_dev, cnn.input_y: y_dev,
                                               cnn.dropout_keep_prob: 1.0})
            print("step {}, loss {:g}, acc {:g}".format(step, loss, accuracy))


if __name__ == "__main__":
    tf.app.run()
