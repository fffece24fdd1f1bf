import numpy as np
import opdock as tf

W = tf.Variable(tf.random_normal(shape=[5, 1]), name='W')
b = tf.Variable(tf.random_normal(shape=[1, 1]), name='b')
input = tf.placeholder(dtype=tf.float32, shape=[None, 5], name='input')
target = tf.placeholder(dtype=tf.float32, shape=[None, 1], name='target')
with tf.name_scope('Wx_plus_b'):
    pred_logits = tf.matmul(input, W) + b
with tf.name_scope('loss'):
    loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(logits=pred_logits, labels=target))
    tf.summary.scalar('loss', loss)
train_op = tf.train.GradientDescentOptimizer(0.003).minimize(loss)
merged = tf.summary.merge_all()

sess = tf.Session()
writer = tf.summary.FileWriter("logs/",
                               sess.graph)
sess.run(tf.global_variables_initializer())
feed = {input: np.random.normal(size=[3, 5]), target: np.array([[0], [0], [1]])}
for i in range(5):
    _, summary = sess.run([train_op, merged], feed_dict=feed)
    writer.add_summary(summary, i)
writer.close()
