"""Train, freeze into one .pb file, load it elsewhere by import_graph_def, predict."""
import os

import numpy as np
import opdock as tf
from opdock.python.framework import graph_util

rng = np.random.RandomState(0)
data = rng.randn(60, 4).astype(np.float32)
target = (data.dot([1., -2., 0.5, 0.]) > 0).astype(np.float32).reshape(-1, 1)


def freeze(session, path, output_names, clear_devices=True):
    graph = session.graph
    with graph.as_default():
        input_graph_def = graph.as_graph_def()
        if clear_devices:
            for node in input_graph_def.node:
                node.device = ""
        frozen_graph = graph_util.convert_variables_to_constants(
            session, input_graph_def, output_names)
        with tf.gfile.GFile(path, "wb") as f:
            f.write(frozen_graph.SerializeToString())
    return frozen_graph


def load_graph(frozen_graph_filename):
    with tf.gfile.GFile(frozen_graph_filename, "rb") as f:
        graph_def = tf.GraphDef()
        graph_def.ParseFromString(f.read())
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(graph_def, name="prefix")
    return graph


with tf.Graph().as_default(), tf.device('/cpu:0'):
    tf.set_random_seed(1)
    x = tf.placeholder(tf.float32, [None, 4], name='input')
    t = tf.placeholder(tf.float32, [None, 1])
    keep_prob = tf.placeholder_with_default(1.0, [], name='keep_prob')
    with tf.variable_scope('fc'):
        w1 = tf.get_variable('w1', [4, 8], initializer=tf.random_normal_initializer(stddev=0.5))
        b1 = tf.get_variable('b1', [8], initializer=tf.zeros_initializer())
        hidden = tf.nn.dropout(tf.nn.relu(tf.matmul(x, w1) + b1), keep_prob)
        w2 = tf.get_variable('w2', [8, 1], initializer=tf.random_normal_initializer(stddev=0.5))
        logits = tf.matmul(hidden, w2)
    output = tf.sigmoid(logits, name='output')
    loss = tf.losses.sigmoid_cross_entropy(t, logits)
    train_op = tf.train.AdamOptimizer(0.05).minimize(loss)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for _ in range(80):
            sess.run(train_op, {x: data, t: target, keep_prob: 0.9})
        expected = sess.run(output, {x: data})
        tf.train.write_graph(sess.graph_def, '.', 'train.pbtxt')
        frozen = freeze(sess, 'frozen_model.pb', [output.op.name])
        full_size = len(sess.graph_def.node)

types = {node.op for node in frozen.node}
graph = load_graph('frozen_model.pb')
names = [op.name for op in graph.get_operations()]
x = graph.get_tensor_by_name('prefix/input:0')
y = graph.get_tensor_by_name('prefix/output:0')
with tf.Session(graph=graph) as sess:
    predicted = sess.run(y, feed_dict={x: data})
    by_name = sess.run('prefix/output:0', {'prefix/input:0': data})

# Splice: the frozen net on another input, its output returned
with tf.Graph().as_default(), tf.Session() as sess:
    doubled = tf.placeholder(tf.float32, [None, 4])
    y, = tf.import_graph_def(frozen, input_map={'input:0': doubled / 2.0},
                             return_elements=['output:0'])
    spliced = sess.run(y, {doubled: data * 2})
accuracy = np.mean((predicted > 0.5) == (target > 0.5))
print("%d nodes of %d, accuracy %.2f" % (len(frozen.node), full_size, accuracy))
