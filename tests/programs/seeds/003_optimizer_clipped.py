import opdock as tf
from opdock.train import GradientDescentOptimizer

w = tf.Variable([1.0, -2.0])
loss = tf.reduce_sum(tf.square(w))
max_norm = 3.0

opt = GradientDescentOptimizer(learning_rate=0.1)
grads_and_vars = opt.compute_gradients(loss, [w])
capped_grads_and_vars = [[tf.clip_by_value(g, -max_norm, max_norm), v] for g, v in
grads_and_vars]
opt_op = opt.apply_gradients(capped_grads_and_vars)
with tf.Session():
    tf.global_variables_initializer().run()
    opt_op.run()
    result = w.eval()
