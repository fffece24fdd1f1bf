"""TF's place of the client modules."""
