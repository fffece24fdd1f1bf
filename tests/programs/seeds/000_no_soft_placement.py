import opdock as tf

with tf.device('/gpu:2'):
	m1 = tf.constant([[3, 5]])
	m2 = tf.constant([[2],[4]])
	product = tf.matmul(m1, m2)
sess = tf.Session(config=tf.ConfigProto(log_device_placement=True))
# Otherwise, the operation will throw an exception if GPU 2 does not exist.
print(sess.run(product))
