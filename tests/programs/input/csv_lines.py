"""Comma-separated lines of several files through two readers, then staged ahead of the model."""
from __future__ import print_function

import numpy as np
import opdock as tf

rng = np.random.RandomState(1)
true_weights = np.array([1.5, -2.0, 0.5])
for i in range(3):
    with open("data%d.csv" % i, "w") as f:
        f.write("a,b,c,y\n")
        for row in rng.uniform(-1, 1, (40, 3)):
            f.write("%r,%r,%r,%r\n" % (*map(float, row), float(row.dot(true_weights))))


def read_my_file_format(filename_queue):
    reader = tf.TextLineReader(skip_header_lines=1)
    key, value = reader.read(filename_queue)
    # Default values, in case of empty columns. Also specifies the type of the decoded result.
    record_defaults = [[0.0]] * 4
    col1, col2, col3, col4 = tf.decode_csv(value, record_defaults=record_defaults)
    return tf.stack([col1, col2, col3]), col4


filename_queue = tf.train.string_input_producer(["data%d.csv" % i for i in range(3)], shuffle=True)
example_list = [read_my_file_format(filename_queue) for _ in range(2)]
features, target = tf.train.shuffle_batch_join(
    example_list, batch_size=10, capacity=60, min_after_dequeue=20)

# One batch is always on its way while the model works on another.
area = tf.contrib.staging.StagingArea([tf.float32, tf.float32], shapes=[[10, 3], [10]])
stage = area.put([features, target])
x, y = area.get()

w = tf.Variable(tf.zeros([3, 1]))
loss = tf.reduce_mean(tf.square(tf.matmul(x, w)[:, 0] - y))
train = tf.train.GradientDescentOptimizer(0.3).minimize(loss)

losses = []
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    coord = tf.train.Coordinator()
    threads = tf.train.start_queue_runners(sess=sess, coord=coord)
    sess.run(stage)
    for step in range(80):
        losses.append(sess.run([train, loss, stage])[1])
    left = sess.run(area.size())
    weights = sess.run(w)[:, 0]
    coord.request_stop()
    coord.join(threads)
