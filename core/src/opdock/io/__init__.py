"""Files and wire formats: TF's protobufs, checkpoints, record files."""
