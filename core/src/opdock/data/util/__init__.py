"""What datasets know of structures, seeds and options."""
