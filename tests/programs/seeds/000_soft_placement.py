import opdock as tf

with tf.device('/gpu:2'):
	m1 = tf.constant([[3, 5]])
	m2 = tf.constant([[2],[4]])
	product = tf.matmul(m1, m2)
sess = tf.Session(config=tf.ConfigProto(
      allow_soft_placement=True, log_device_placement=True))
result = sess.run(product)
print(result)
