import opdock as tf

#build graph
p = tf.placeholder(tf.float32)
t = p + 1.0
#run graph
sess = tf.InteractiveSession()
result = t.eval(feed_dict={p:2.0}) # correct!
sess.close()
