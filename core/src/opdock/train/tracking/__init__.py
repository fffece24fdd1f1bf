"""Object-based checkpoints: `tf.train.Checkpoint` and what stands behind it."""
