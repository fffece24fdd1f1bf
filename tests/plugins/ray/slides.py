"""What slides of TensorFlow 1 say of training on many machines: programs of one process a task.

Data parallelism within one graph and between graphs, in step and not; model parallelism, where each
task has a layer. `opdock launch --flags` says who a process is.
"""

import numpy as np
import tensorflow as tf

flags = tf.app.flags
flags.DEFINE_string("pattern", "", "a function below")
flags.DEFINE_string("job_name", "", "ps or worker")
flags.DEFINE_integer("task_index", 0, "which one")
flags.DEFINE_list("ps_hosts", "", "host:port, with commas")
flags.DEFINE_list("worker_hosts", "", "host:port, with commas")
flags.DEFINE_integer("steps", 40, "of each worker")
flags.DEFINE_float("rate", 0.1, "of learning")
FLAGS = flags.FLAGS

X = np.random.RandomState(0).randn(64, 3).astype(np.float32)
Y = X.sum(1, keepdims=True)


def data_parallelism(cluster, server):
    """The parts of one batch go to several machines, which one program has compute."""
    a = tf.random_uniform([1000, 100])
    b = tf.random_uniform([1000, 100])
    split_a = tf.split(a, 2)
    split_b = tf.split(b, 2)
    split_c = []
    for i in range(2):
        with tf.device(tf.DeviceSpec(job="ps", task=i)):
            split_c.append(split_a[i] + split_b[i])
    c = tf.concat(split_c, axis=0)
    with tf.Session(server.target) as sess:
        added, summands = sess.run([c, [a, b]])
        print("done", split_c[1].device, np.array_equal(added, sum(summands)))


def model_parallelism(cluster, server):
    """Each layer is on a machine of its own, and so are its gradients."""
    fc1 = tf.placeholder(tf.float32, [None, 4], name="x")
    with tf.device("/job:ps/task:0"):
        w1 = tf.Variable(tf.ones([4, 3]))
        b1 = tf.Variable(tf.zeros([3]))
        fc1 = tf.add(tf.matmul(fc1, w1), b1)
        fc1 = tf.nn.relu(fc1)
    with tf.device("/job:ps/task:1"):
        w2 = tf.Variable(tf.ones([3, 2]))
        b2 = tf.Variable(tf.ones([2]))
        fc2 = tf.add(tf.matmul(fc1, w2), b2)
        fc2 = tf.nn.relu(fc2)
    loss = tf.reduce_mean(tf.square(fc2 - 2.0))
    train = tf.train.GradientDescentOptimizer(0.002).minimize(loss)
    x = {"x:0": [[1.0, 2.0, 3.0, 4.0], [-1.0, -1.0, -1.0, -1.0]]}
    with tf.Session(server.target) as sess:
        sess.run(tf.global_variables_initializer())
        result, before = sess.run([fc2, loss], x)
        for _ in range(FLAGS.steps):
            sess.run(train, x)
        print("done", result.tolist(), sess.run(loss, x) < 0.01 * before)


def synchronous(cluster, server):
    """All compute the gradients of their parts of a batch, whose mean updates the model."""
    sync = tf.train.SyncReplicasOptimizer(tf.train.GradientDescentOptimizer(FLAGS.rate), 2, 2)
    w, step, train = replica(cluster, sync)
    chief = FLAGS.task_index == 0
    local = sync.chief_init_op if chief else sync.local_step_init_op
    runner, tokens = sync.get_chief_queue_runner(), sync.get_init_tokens_op(0)
    supervisor = tf.train.Supervisor(
        is_chief=chief, local_init_op=local, recovery_wait_secs=1, stop_grace_secs=0,
        ready_for_local_init_op=sync.ready_for_local_init_op, global_step=step,
    )  # fmt: skip
    sess = supervisor.prepare_or_wait_for_session(server.target, config=own_task_and_servers())
    if chief:
        supervisor.start_queue_runners(sess, [runner])
        sess.run(tokens)
    for _ in range(FLAGS.steps):
        sess.run(train)
    print("done", sess.run(step), sess.run(w)[:, 0].tolist())
    supervisor.stop(ignore_live_threads=True)  # one waits for gradients that nobody makes


def asynchronous(cluster, server):
    """Nobody waits for others' updates."""
    w, step, train = replica(cluster, tf.train.GradientDescentOptimizer(FLAGS.rate))
    supervisor = tf.train.Supervisor(
        is_chief=FLAGS.task_index == 0, recovery_wait_secs=1, global_step=step
    )
    with supervisor.managed_session(server.target, config=own_task_and_servers()) as sess:
        for _ in range(FLAGS.steps):
            sess.run(train)
        print("done", sess.run(step), sess.run(w)[:, 0].tolist())


def replica(cluster, optimizer):
    """The model of a worker, and its part of the batch."""
    own = f"/job:worker/task:{FLAGS.task_index}"
    with tf.device(tf.train.replica_device_setter(worker_device=own, cluster=cluster)):
        part = slice(FLAGS.task_index, None, len(FLAGS.worker_hosts))
        w = tf.get_variable("w", [3, 1], initializer=tf.zeros_initializer())
        loss = tf.reduce_mean(tf.square(tf.matmul(tf.constant(X[part]), w) - Y[part]))
        step = tf.train.get_or_create_global_step()
        return w, step, optimizer.minimize(loss, global_step=step)


def own_task_and_servers():
    """A session that does not wait for the other workers."""
    return tf.ConfigProto(device_filters=["/job:ps", f"/job:worker/task:{FLAGS.task_index}"])


def main(_):
    cluster = tf.train.ClusterSpec({"ps": FLAGS.ps_hosts, "worker": FLAGS.worker_hosts})
    server = tf.train.Server(cluster, job_name=FLAGS.job_name, task_index=FLAGS.task_index)
    if FLAGS.job_name == "ps":
        server.join()
    patterns = (data_parallelism, model_parallelism, synchronous, asynchronous)
    {p.__name__: p for p in patterns}[FLAGS.pattern](cluster, server)


if __name__ == "__main__":
    tf.app.run()
