"""What op families share; neither ops nor public functions."""
