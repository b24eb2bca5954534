"""Studies: a grid of cells becomes runs, and run folders become tables."""
