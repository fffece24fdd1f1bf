"""TensorFlow 1's tools for checkpoints, graphs and SavedModels: command lines and functions."""
