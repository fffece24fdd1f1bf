import opdock as tf
from opdock.train import GradientDescentOptimizer

w = tf.Variable([1.0, -2.0])
cost = tf.reduce_sum(tf.square(w))

opt = GradientDescentOptimizer(learning_rate=0.1)
opt_op = opt.minimize(cost, var_list=[w])
with tf.Session():
    tf.global_variables_initializer().run()
    opt_op.run()
    result = w.eval()
