import opdock as tf

c = []
for d in ['/gpu:1', '/gpu:2']:
  with tf.device(d):
     a = tf.constant([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], shape=[2, 3])
     b = tf.constant([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], shape=[3, 2])
     c.append(tf.matmul(a, b))

with tf.device('/cpu:0'):
     total = tf.add_n(c)

sess = tf.Session(config=tf.ConfigProto(
      allow_soft_placement=True, log_device_placement=True))
result = sess.run(total)
print(result)
