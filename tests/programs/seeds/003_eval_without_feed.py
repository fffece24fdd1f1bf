import opdock as tf

#build graph
p = tf.placeholder(tf.float32)
t = p + 1.0
#run graph
with tf.Session():
    t.eval() # wrong! t depends on p (placeholder)
