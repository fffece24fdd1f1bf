import opdock as tf

fc1 = tf.placeholder(tf.float32, [None, 4])
with tf.device('/gpu:0'):
    w1=tf.Variable(tf.ones([4, 3]))
    b1=tf.Variable(tf.zeros([3]))
    fc1 = tf.add(tf.matmul(fc1,w1),b1)
    fc1=tf.nn.relu(fc1)

with tf.device('/gpu:1'):
    w2=tf.Variable(tf.ones([3, 2]))
    b2=tf.Variable(tf.ones([2]))
    fc2 = tf.add(tf.matmul(fc1,w2),b2)
    fc2=tf.nn.relu(fc2)

with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as sess:
    sess.run(tf.global_variables_initializer())
    result = sess.run(fc2, feed_dict={"Placeholder:0": [[1.0, 2.0, 3.0, 4.0], [-1.0, -1.0, -1.0, -1.0]]})
