"""Networks of tf_slim: variables and end points as TensorFlow has them, a step of training."""

import hashlib
import importlib
import json

import numpy as np
import pytest
import tensorflow as tf
import tf_slim as slim

# Function, arguments' scope, size of images; numbers and digests of variables and of end points:
# names and shapes, as TensorFlow 2.21's compat.v1 gives them.
MODELS = {
    "inception_v1": (
        "inception_v1", "inception_v1_arg_scope", 224, 230, "aacfbe506164", 18, "f958ea9a3901",
    ),
    "inception_v2": (
        "inception_v2", "inception_v2_arg_scope", 224, 277, "f7993056a422", 17, "53ed4934a27a",
    ),
    "inception_v3": (
        "inception_v3", "inception_v3_arg_scope", 139, 388, "448619e64dee", 22, "ff1d1acd8e99",
    ),
    "resnet_v1": (
        "resnet_v1_50", "resnet_arg_scope", 64, 267, "6bccf42587fb", 75, "33d63b439a2e",
    ),
    "resnet_v2": (
        "resnet_v2_50", "resnet_arg_scope", 64, 272, "acb9b134f1c7", 75, "07dd8fee223e",
    ),
    "vgg": (
        "vgg_16", "vgg_arg_scope", 224, 32, "e4fd5a1d5aac", 21, "f27c83acea7b",
    ),
}  # fmt: skip


def built(name, training, labels=11):
    function, scope, size = MODELS[name][:3]
    module = importlib.import_module(f"tf_slim.nets.{name}")
    images = tf.placeholder(tf.float32, [2, size, size, 3], name="images")
    with slim.arg_scope(getattr(module, scope)()):
        logits, ends = getattr(module, function)(images, num_classes=labels, is_training=training)
    return images, logits, ends


def digest(what):
    return hashlib.sha256(json.dumps(what).encode()).hexdigest()[:12]


def devices():
    """The processor, and an OpenCL device where there is one."""
    names = {device.device_type for device in tf.Session().list_devices()}
    return ["/cpu:0", *(["/device:OPENCL:0"] if "OPENCL" in names else [])]


@pytest.mark.parametrize("name", MODELS)
def test_names_and_shapes_are_tensorflows(name):
    with tf.Graph().as_default():
        _, _, ends = built(name, training=False)
        variables = sorted((v.op.name, v.shape.as_list()) for v in tf.global_variables())
        places = sorted((key, end.op.name, end.shape.as_list()) for key, end in ends.items())
    found = [len(variables), digest(variables), len(places), digest(places)]
    assert found == list(MODELS[name][3:])


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("device", devices())
def test_a_step_of_training(name, device):
    size = MODELS[name][2]
    with tf.Graph().as_default(), tf.device(device):
        tf.set_random_seed(1)
        images, logits, _ = built(name, training=True)
        logits = tf.reshape(logits, [2, 11])
        loss = tf.losses.sparse_softmax_cross_entropy([3, 5], logits)
        step = slim.learning.create_train_op(loss, tf.train.GradientDescentOptimizer(1e-3))
        given = {images: np.random.RandomState(0).rand(2, size, size, 3)}
        with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as sess:
            sess.run(tf.global_variables_initializer())
            before = sess.run(tf.trainable_variables())
            value = sess.run(step, given)
            after = sess.run(tf.trainable_variables())
            assert np.isfinite(value) and sess.run(loss, given) != value
    changed = [not np.array_equal(a, b) for a, b in zip(before, after)]
    assert np.mean(changed) > 0.9
