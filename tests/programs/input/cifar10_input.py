"""CIFAR-10's binary files through a FixedLengthRecordReader, as the tutorial of 2016 read them."""
from __future__ import print_function

import os

import numpy as np
import opdock as tf

IMAGE_SIZE = 24
DATA_DIR = "cifar-10-batches-bin"
BATCH = 16


def make_data():
    rng = np.random.RandomState(0)
    os.mkdir(DATA_DIR)
    for i in range(1, 4):
        labels = rng.randint(0, 10, (20, 1)).astype(np.uint8)
        # The label is the red channel's brightness, so that it can be told from the image.
        images = np.repeat(labels * 20, 32 * 32 * 3, 1)
        with open(os.path.join(DATA_DIR, "data_batch_%d.bin" % i), "wb") as f:
            f.write(np.concatenate([labels, images], 1).tobytes())


def read_cifar10(filename_queue):
    class CIFAR10Record(object):
        pass
    result = CIFAR10Record()

    # Dimensions of the images in the CIFAR-10 dataset.
    label_bytes = 1
    result.height = 32
    result.width = 32
    result.depth = 3
    image_bytes = result.height * result.width * result.depth
    # Every record consists of a label followed by the image, with a
    # fixed number of bytes for each.
    record_bytes = label_bytes + image_bytes

    reader = tf.FixedLengthRecordReader(record_bytes=record_bytes)
    result.key, value = reader.read(filename_queue)

    record_bytes = tf.decode_raw(value, tf.uint8)
    result.label = tf.cast(tf.strided_slice(record_bytes, [0], [label_bytes]), tf.int32)
    depth_major = tf.reshape(
        tf.strided_slice(record_bytes, [label_bytes], [label_bytes + image_bytes]),
        [result.depth, result.height, result.width])
    # Convert from [depth, height, width] to [height, width, depth].
    result.uint8image = tf.transpose(depth_major, [1, 2, 0])
    return result


def inputs(batch_size):
    filenames = [os.path.join(DATA_DIR, "data_batch_%d.bin" % i) for i in range(1, 4)]
    for f in filenames:
        if not tf.gfile.Exists(f):
            raise ValueError("Failed to find file: " + f)
    filename_queue = tf.train.string_input_producer(filenames)
    read_input = read_cifar10(filename_queue)
    reshaped_image = tf.cast(read_input.uint8image, tf.float32)
    resized_image = tf.image.resize_image_with_crop_or_pad(reshaped_image, IMAGE_SIZE, IMAGE_SIZE)
    resized_image = tf.image.random_flip_left_right(resized_image)
    read_input.label.set_shape([1])
    images, label_batch, keys = tf.train.batch(
        [resized_image, read_input.label, read_input.key], batch_size=batch_size,
        num_threads=2, capacity=3 * batch_size)
    return images, tf.reshape(label_batch, [batch_size]), keys


make_data()
with tf.Graph().as_default():
    with tf.device("/cpu:0"):
        images, labels, keys = inputs(BATCH)
    brightness = tf.reduce_mean(images, [1, 2, 3])
    seen, shapes, right = set(), set(), True
    with tf.Session() as sess:
        coord = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(sess=sess, coord=coord)
        for step in range(8):
            x, y, k, mean = sess.run([images, labels, keys, brightness])
            shapes.add(x.shape)
            seen.update(k.tolist())
            right = right and np.allclose(mean, y * 20.0)
        coord.request_stop()
        coord.join(threads, stop_grace_period_secs=30)
    print("%d records seen" % len(seen))
