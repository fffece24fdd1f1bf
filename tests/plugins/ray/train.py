"""A distributed program as TensorFlow 1's documentation has it: one process a task."""

import tensorflow as tf

flags = tf.app.flags
flags.DEFINE_string("job_name", "", "ps or worker")
flags.DEFINE_integer("task_index", 0, "which one")
flags.DEFINE_string("ps_hosts", "", "host:port, with commas")
flags.DEFINE_string("worker_hosts", "", "host:port, with commas")
flags.DEFINE_string("checkpoints", "", "where the chief writes")
flags.DEFINE_integer("steps", 30, "of all workers")
FLAGS = flags.FLAGS


class Tell(tf.train.SessionRunHook):
    """Says when a session has been made."""

    def after_create_session(self, session, coord):
        print("session made", flush=True)


def main(_):
    cluster = tf.train.ClusterSpec(
        {"ps": FLAGS.ps_hosts.split(","), "worker": FLAGS.worker_hosts.split(",")}
    )
    server = tf.train.Server(cluster, job_name=FLAGS.job_name, task_index=FLAGS.task_index)
    if FLAGS.job_name == "ps":
        server.join()
    setter = tf.train.replica_device_setter(
        worker_device=f"/job:worker/task:{FLAGS.task_index}", cluster=cluster
    )
    with tf.device(setter):
        x = tf.random_uniform([8, 3], seed=1)
        w = tf.get_variable("w", [3, 1], initializer=tf.zeros_initializer())
        loss = tf.reduce_mean(tf.square(tf.matmul(x, w) - tf.reduce_sum(x, 1, keepdims=True)))
        step = tf.train.get_or_create_global_step()
        train = tf.train.GradientDescentOptimizer(0.5).minimize(loss, global_step=step)
    # A worker waits for all tasks that its session spans: without filters for a chief that may have
    # ended already.
    own = f"/job:worker/task:{FLAGS.task_index}"
    config = tf.ConfigProto(device_filters=["/job:ps", own])
    hooks = [tf.train.StopAtStepHook(last_step=FLAGS.steps), Tell()]
    with tf.train.MonitoredTrainingSession(
        server.target, is_chief=FLAGS.task_index == 0, hooks=hooks,
        checkpoint_dir=FLAGS.checkpoints or None, save_checkpoint_steps=5, config=config,
    ) as sess:  # fmt: skip
        while not sess.should_stop():
            at, error = sess.run([step, loss, train])[:2]
            print("step", at, flush=True)
    print(f"done {at} {error:.3f}", flush=True)


if __name__ == "__main__":
    tf.app.run()
