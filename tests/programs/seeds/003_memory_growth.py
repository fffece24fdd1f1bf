import opdock as tf

with tf.device('/cpu:0'):
    a = tf.constant([1.0, 2.0, 3.0, 4.0], shape=[2, 2], name='a')
    b = tf.constant([3.0, 4.0, 5.0, 6.0], shape=[2, 2], name='b')

with tf.device('/gpu:0'):
    c = tf.matmul(a, b)

config = tf.ConfigProto(allow_soft_placement=True)
config.gpu_options.allow_growth = True
session = tf.Session(config=config)
result = session.run(c)
