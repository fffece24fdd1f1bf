import opdock as tf

ten = tf.constant(10.0)
a = tf.convert_to_tensor([[1.0, 2.0], [3.0, 4.0]])
b = tf.convert_to_tensor([[1.0], [1.0]])
product = tf.matmul(a, b)
v = tf.Variable(0)
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    result = sess.run([ten, product, v])
