"""The corners of variable scopes, variables and collections that real code walks into."""

import functools

import numpy as np
import opdock as tf


def define_scope(function):
    """The decorator of the 'structuring your model' post."""
    attribute = "_cache_" + function.__name__

    @property
    @functools.wraps(function)
    def decorator(self):
        if not hasattr(self, attribute):
            with tf.variable_scope(function.__name__):
                setattr(self, attribute, function(self))
        return getattr(self, attribute)

    return decorator


class Model:
    def __init__(self, image, label):
        self.image, self.label = image, label
        self.prediction
        self.optimize
        self.error

    @define_scope
    def prediction(self):
        w = tf.get_variable("w", [4, 2], regularizer=tf.contrib.layers.l2_regularizer(0.1))
        return tf.nn.softmax(tf.matmul(self.image, w))

    @define_scope
    def optimize(self):
        cross_entropy = -tf.reduce_sum(self.label * tf.log(self.prediction))
        reg = tf.add_n(tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES))
        return tf.train.RMSPropOptimizer(0.03).minimize(cross_entropy + reg)

    @define_scope
    def error(self):
        mistakes = tf.not_equal(tf.argmax(self.label, 1), tf.argmax(self.prediction, 1))
        return tf.reduce_mean(tf.cast(mistakes, tf.float32))


tf.set_random_seed(0)
image, label = tf.placeholder(tf.float32, [None, 4]), tf.placeholder(tf.float32, [None, 2])
model = Model(image, label)

names = {}
with tf.variable_scope("foo") as foo_scope:
    v = tf.get_variable("v", [1])
    with tf.name_scope("bar"):
        v_in_bar = tf.get_variable("v2", [1])
        op_in_bar = 1.0 + v_in_bar
with tf.variable_scope("other"):
    with tf.variable_scope(foo_scope, reuse=True):
        same = tf.get_variable("v", [1])
    with tf.variable_scope("foo"):
        different = tf.get_variable("v", [1])
names["default"] = []
for _ in range(2):
    with tf.variable_scope(None, default_name="block"):
        names["default"].append(tf.get_variable("w", [2]).name)
try:
    with tf.variable_scope("foo"):
        tf.get_variable("v", [1])
    exists = ""
except ValueError as e:
    exists = str(e)
try:
    with tf.variable_scope("foo", reuse=True):
        tf.get_variable("nothing", [1])
    absent = ""
except ValueError as e:
    absent = str(e)
try:
    with tf.variable_scope("foo", reuse=True):
        tf.get_variable("v", [3])
    mismatch = ""
except ValueError as e:
    mismatch = str(e)


def scaled(getter, name, *args, **kwargs):
    return getter(name, *args, **kwargs) * 10.0


with tf.variable_scope("getter", custom_getter=scaled, initializer=tf.ones_initializer()):
    ten = tf.get_variable("one", [2])
with tf.variable_scope("frozen"):
    frozen = tf.get_variable("table", initializer=np.eye(2, dtype=np.float32), trainable=False)
    local = tf.get_variable(
        "counter", [], tf.int32, tf.zeros_initializer(), collections=[tf.GraphKeys.LOCAL_VARIABLES]
    )
names["plain"] = [tf.Variable(0.0, name="count").name, tf.Variable(0.0, name="count").name]
names["ops"] = [op_in_bar.op.name, v_in_bar.op.name, same.name, different.name]
trainable = [t.op.name for t in tf.trainable_variables()]

ref = tf.Variable(np.zeros([4, 2]), dtype=tf.float32, name="ref")
scatter = tf.scatter_update(ref, [1, 3], [[1.0, 2.0], [3.0, 4.0]])
add = tf.assign_add(local, 5)
with tf.control_dependencies([scatter]):
    after = ref.read_value()
row = ref[1].assign([7.0, 8.0])
dependent = tf.Variable(ref.initialized_value() + 1.0)

np.random.seed(0)
xs = np.random.randn(50, 4)
ys = np.eye(2)[(xs[:, 0] > xs[:, 1]).astype(int)]
with tf.Session() as sess:
    missing = sess.run(tf.report_uninitialized_variables()).tolist()
    sess.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
    sess.graph.finalize()
    before = sess.run(model.error, {image: xs, label: ys})
    for _ in range(60):
        sess.run(model.optimize, {image: xs, label: ys})
    error = sess.run(model.error, {image: xs, label: ys})
    ten_value, frozen_value = sess.run([ten, frozen])
    counted = [sess.run(add), sess.run(add)]
    scattered, rowed = sess.run(after), sess.run(row)
    shared = sess.run([v, same])
    ones = sess.run(dependent)
    try:
        tf.constant(1)
        frozen_graph = ""
    except RuntimeError as e:
        frozen_graph = str(e)
print("error %.2f -> %.2f" % (before, error), names)
