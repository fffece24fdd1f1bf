import opdock as tf
from opdock.train import AdagradDAOptimizer, AdamOptimizer

result = {}
for name in ["AdagradDAOptimizer", "AdamOptimizer"]:
    w = tf.Variable([1.0, -2.0])
    cost = tf.reduce_sum(tf.square(w))
    if name == "AdagradDAOptimizer":
        step = tf.Variable(0, dtype=tf.int64, trainable=False)
        opt_op = AdagradDAOptimizer(0.1, step).minimize(cost, global_step=step, var_list=[w])
    else:
        opt_op = AdamOptimizer(0.1).minimize(cost, var_list=[w])
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        before = sess.run(cost)
        for i in range(20):
            sess.run(opt_op)
        result[name] = [before, sess.run(cost)]
