"""Operations, tensors, graphs, and everything that adds a node to one."""
