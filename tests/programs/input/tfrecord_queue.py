"""The input pipeline of 2017: images and labels as Examples in TFRecord files, read by threads.

Writes its data first, then trains a classifier on shuffled batches until the epochs are over.
"""
from __future__ import print_function

import os

import numpy as np
import opdock as tf

FLAGS = tf.app.flags.FLAGS
tf.app.flags.DEFINE_string("train_dir", "records", "Directory of the training data.")
tf.app.flags.DEFINE_integer("num_epochs", 4, "How often to read it.")
tf.app.flags.DEFINE_integer("batch_size", 20, "Batch size.")

IMAGE_SIZE = 6
PER_FILE = 50


def _int64_feature(value):
    return tf.train.Feature(int64_list=tf.train.Int64List(value=[value]))


def _bytes_feature(value):
    return tf.train.Feature(bytes_list=tf.train.BytesList(value=[value]))


def convert_to(images, labels, name):
    """Converts a dataset to tfrecords."""
    filename = os.path.join(FLAGS.train_dir, name + ".tfrecords")
    writer = tf.python_io.TFRecordWriter(filename)
    for index in range(len(images)):
        example = tf.train.Example(features=tf.train.Features(feature={
            "height": _int64_feature(images.shape[1]),
            "width": _int64_feature(images.shape[2]),
            "label": _int64_feature(int(labels[index])),
            "image_raw": _bytes_feature(images[index].tobytes())}))
        writer.write(example.SerializeToString())
    writer.close()


def make_data():
    """Bright upper halves are of class 1."""
    rng = np.random.RandomState(3)
    tf.gfile.MakeDirs(FLAGS.train_dir)
    for i in range(3):
        labels = rng.randint(0, 2, PER_FILE)
        images = rng.randint(0, 100, (PER_FILE, IMAGE_SIZE, IMAGE_SIZE)).astype(np.uint8)
        images[labels == 1, :3] += 120
        images[labels == 0, 3:] += 120
        convert_to(images, labels, "train-%d" % i)


def read_and_decode(filename_queue):
    reader = tf.TFRecordReader()
    _, serialized_example = reader.read(filename_queue)
    features = tf.parse_single_example(
        serialized_example,
        features={
            "image_raw": tf.FixedLenFeature([], tf.string),
            "label": tf.FixedLenFeature([], tf.int64),
        })
    image = tf.decode_raw(features["image_raw"], tf.uint8)
    image.set_shape([IMAGE_SIZE * IMAGE_SIZE])
    image = tf.cast(image, tf.float32) * (1. / 255) - 0.5
    label = tf.cast(features["label"], tf.int32)
    return image, label


def inputs(batch_size, num_epochs):
    filenames = tf.train.match_filenames_once(os.path.join(FLAGS.train_dir, "*.tfrecords"))
    with tf.name_scope("input"):
        filename_queue = tf.train.string_input_producer(filenames, num_epochs=num_epochs)
        image, label = read_and_decode(filename_queue)
        # Shuffle the examples and collect them into batch_size batches.
        images, sparse_labels = tf.train.shuffle_batch(
            [image, label], batch_size=batch_size, num_threads=2,
            capacity=100 + 3 * batch_size,
            # Ensures a minimum amount of shuffling of examples.
            min_after_dequeue=100)
    return images, sparse_labels


def run_training():
    global losses, steps, accuracy, stopped
    images, labels = inputs(FLAGS.batch_size, FLAGS.num_epochs)
    weights = tf.Variable(tf.zeros([IMAGE_SIZE * IMAGE_SIZE, 2]), name="weights")
    biases = tf.Variable(tf.zeros([2]), name="biases")
    logits = tf.nn.xw_plus_b(images, weights, biases)
    loss = tf.reduce_mean(
        tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
    correct = tf.reduce_mean(tf.cast(tf.nn.in_top_k(logits, labels, 1), tf.float32))
    train_op = tf.train.GradientDescentOptimizer(0.5).minimize(loss)
    # The epochs are counted in a local variable.
    init_op = tf.group(tf.global_variables_initializer(), tf.local_variables_initializer())

    sess = tf.Session()
    sess.run(init_op)
    coord = tf.train.Coordinator()
    threads = tf.train.start_queue_runners(sess=sess, coord=coord)
    losses, steps = [], 0
    try:
        while not coord.should_stop():
            _, loss_value, accuracy = sess.run([train_op, loss, correct])
            losses.append(loss_value)
            steps += 1
    except tf.errors.OutOfRangeError:
        print("Done training for %d epochs, %d steps." % (FLAGS.num_epochs, steps))
    finally:
        # When done, ask the threads to stop.
        coord.request_stop()
    coord.join(threads)
    stopped = not any(t.is_alive() for t in threads)
    sess.close()


if __name__ == "__main__":
    make_data()
    run_training()
