"""Which device and which kernel each node gets, and in which data format."""
