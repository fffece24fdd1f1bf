import opdock as tf

my_image = tf.zeros([10, 224, 224, 3])
