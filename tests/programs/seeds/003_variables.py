import opdock as tf

cons = tf.get_variable("scalar", initializer=tf.constant(3))
matrix = tf.get_variable("matrix", initializer=tf.constant([[1, 2], [3, 4]]))
session = tf.Session()
session.run(tf.global_variables_initializer())
result = session.run([cons, matrix])
