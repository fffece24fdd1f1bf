"""`tf.train`: optimizers, checkpoints and training helpers."""
