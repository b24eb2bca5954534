"""Training: the loop, its loss and schedule, and the checkpoint that makes it resumable."""
