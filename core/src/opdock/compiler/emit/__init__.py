"""From placed nodes to steps: copies, slots, buffers, threads."""
