"""LeNet-ish conv net, "deep MNIST for experts" style, on 14x14 pictures of bars."""
import numpy as np
import opdock as tf

tf.set_random_seed(1)
np.random.seed(1)
SIZE = 14


def bars(n):
    """Class 0: a horizontal bar, 1: a vertical bar, 2: a square, 3: a diagonal."""
    images = np.random.rand(n, SIZE, SIZE).astype("float32") * 0.3
    labels = np.random.randint(4, size=n)
    for img, label in zip(images, labels):
        r, c = np.random.randint(1, SIZE - 6, size=2)
        if label == 0:
            img[r, c:c + 5] = 1
        elif label == 1:
            img[r:r + 5, c] = 1
        elif label == 2:
            img[r:r + 3, c:c + 3] = 1
        else:
            img[np.arange(r, r + 5), np.arange(c, c + 5)] = 1
    return images.reshape(n, -1), np.eye(4, dtype="float32")[labels]


def weight_variable(shape):
    initial = tf.truncated_normal(shape, stddev=0.1)
    return tf.Variable(initial)


def bias_variable(shape):
    initial = tf.constant(0.1, shape=shape)
    return tf.Variable(initial)


def conv2d(x, W):
    return tf.nn.conv2d(x, W, strides=[1, 1, 1, 1], padding='SAME')


def max_pool_2x2(x):
    return tf.nn.max_pool(x, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding='SAME')


x = tf.placeholder(tf.float32, shape=[None, SIZE * SIZE])
y_ = tf.placeholder(tf.float32, shape=[None, 4])
x_image = tf.reshape(x, [-1, SIZE, SIZE, 1])

W_conv1 = weight_variable([5, 5, 1, 8])
b_conv1 = bias_variable([8])
h_conv1 = tf.nn.relu(conv2d(x_image, W_conv1) + b_conv1)
h_pool1 = max_pool_2x2(h_conv1)

W_conv2 = weight_variable([3, 3, 8, 16])
b_conv2 = bias_variable([16])
h_conv2 = tf.nn.relu(tf.nn.bias_add(conv2d(h_pool1, W_conv2), b_conv2))
h_pool2 = max_pool_2x2(h_conv2)

flat_size = int(np.prod(h_pool2.get_shape().as_list()[1:]))
W_fc1 = weight_variable([flat_size, 32])
b_fc1 = bias_variable([32])
h_pool2_flat = tf.reshape(h_pool2, [-1, flat_size])
h_fc1 = tf.nn.relu(tf.matmul(h_pool2_flat, W_fc1) + b_fc1)

keep_prob = tf.placeholder(tf.float32)
h_fc1_drop = tf.nn.dropout(h_fc1, keep_prob)

W_fc2 = weight_variable([32, 4])
b_fc2 = bias_variable([4])
y_conv = tf.nn.xw_plus_b(h_fc1_drop, W_fc2, b_fc2)

cross_entropy = tf.reduce_mean(
    tf.nn.softmax_cross_entropy_with_logits(labels=y_, logits=y_conv))
train_step = tf.train.AdamOptimizer(3e-3).minimize(cross_entropy)
correct_prediction = tf.equal(tf.argmax(y_conv, 1), tf.argmax(y_, 1))
accuracy = tf.reduce_mean(tf.cast(correct_prediction, tf.float32))

test_images, test_labels = bars(300)
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for i in range(160):
        images, labels = bars(50)
        if i % 40 == 0:
            train_accuracy = accuracy.eval(feed_dict={x: images, y_: labels, keep_prob: 1.0})
            print('step %d, training accuracy %g' % (i, train_accuracy))
        train_step.run(feed_dict={x: images, y_: labels, keep_prob: 0.8})
    test_accuracy = accuracy.eval(
        feed_dict={x: test_images, y_: test_labels, keep_prob: 1.0})
    print('test accuracy %g' % test_accuracy)
