"""TensorFlow 1's command-line tools for checkpoints, graphs and SavedModels, and their functions."""
