"""Finding nodes for tasks: which node is feasible, which is best, and why the others are not."""
