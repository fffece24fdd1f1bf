import numpy as np
import opdock as tf

W = tf.Variable(tf.random_normal(shape=[5, 1]), name='W')
b = tf.Variable(tf.random_normal(shape=[1, 1]), name='b')
input = tf.placeholder(dtype=tf.float32, shape=[None, 5], name='input')
target = tf.placeholder(dtype=tf.float32, shape=[None, 1], name='target')

with tf.name_scope('Wx_plus_b'):
    pred_logits = tf.matmul(input, W) + b

loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(logits=pred_logits, labels=target))
init = tf.global_variables_initializer()

learning_rate = 0.003
opt = tf.train.GradientDescentOptimizer(learning_rate)
train_op = opt.minimize(loss)

# Automatic differentiation
y = loss
grad_W = tf.gradients(y, W)
grad_b = tf.gradients(y, b)

x_input = np.random.normal(loc = 0.0, scale = 1.0, size = [3,5])
y_true = np.array([[0], [0], [1]])
iter_num = 200

sess = tf.Session()
sess.run(init)
losses = []
gradients = sess.run([grad_W, grad_b], feed_dict={input: x_input, target: y_true})
for i in range(iter_num):
    _, pred, logss = sess.run([train_op, pred_logits, loss], feed_dict={input: x_input,
                                target: y_true})
    losses.append(logss)
