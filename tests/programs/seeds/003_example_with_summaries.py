# The slides end with pictures of a program shown in class. This one gives the same tags.
import numpy as np
import opdock as tf
from sklearn.datasets import load_digits

images, labels = load_digits(return_X_y=True)
images = images / 16.0

def add_layer(inputs, size, name, activation):
    with tf.name_scope(name):
        with tf.name_scope('weights'):
            weights = tf.Variable(tf.truncated_normal([int(inputs.shape[1]), size], stddev=0.1))
            with tf.name_scope('summaries'):
                tf.summary.histogram('histogram', weights)
        with tf.name_scope('biases'):
            biases = tf.Variable(tf.constant(0.1, shape=[size]))
            with tf.name_scope('summaries'):
                tf.summary.histogram('histogram', biases)
        with tf.name_scope('Wx_plus_b'):
            preactivate = tf.matmul(inputs, weights) + biases
            tf.summary.histogram('pre_activations', preactivate)
        activations = activation(preactivate, name='activation')
        tf.summary.histogram('activations', activations)
        return activations

x = tf.placeholder(tf.float32, [None, 64], name='x-input')
y_ = tf.placeholder(tf.int64, [None], name='y-input')
hidden1 = add_layer(x, 64, 'layer1', tf.nn.relu)
keep_prob = tf.placeholder(tf.float32)
y = add_layer(tf.nn.dropout(hidden1, keep_prob), 10, 'layer2', tf.identity)

with tf.name_scope('cross_entropy'):
    cross_entropy = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y_, logits=y))
tf.summary.scalar('cross_entropy_1', cross_entropy)
with tf.name_scope('accuracy'):
    correct_prediction = tf.equal(tf.argmax(y, 1), y_)
    accuracy = tf.reduce_mean(tf.cast(correct_prediction, tf.float32))
tf.summary.scalar('accuracy_1', accuracy)
train_step = tf.train.AdamOptimizer(0.003).minimize(cross_entropy)

merged = tf.summary.merge_all()
sess = tf.InteractiveSession()
train_writer = tf.summary.FileWriter('logs/train', sess.graph)
tf.global_variables_initializer().run()
for i in range(150):
    rows = np.random.randint(0, 1500, 100)
    summary, _ = sess.run([merged, train_step], feed_dict={x: images[rows], y_: labels[rows], keep_prob: 0.9})
    train_writer.add_summary(summary, i)
train_writer.close()
result = sess.run(accuracy, feed_dict={x: images[1500:], y_: labels[1500:], keep_prob: 1.0})
sess.close()
