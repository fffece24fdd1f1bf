"""What the suite prints and writes."""
