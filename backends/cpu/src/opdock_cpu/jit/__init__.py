"""Code generation for the processor: elementwise clusters and optimizer updates through LLVM."""
