import opdock as tf

a = tf.random_uniform([1000, 100])
b = tf.random_uniform([1000, 100])
split_a = tf.split(a, 2)
split_b = tf.split(b, 2)

split_c = []
for i in range(2):
    with tf.device(tf.DeviceSpec(device_type="GPU", device_index=i)):
        split_c.append(split_a[i] + split_b[i])

c = tf.concat(split_c, axis=0)
with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as sess:
    a_value, b_value, c_value = sess.run([a, b, c])
