"""The program under construction: nodes, values, blocks, and what must stay in order."""
