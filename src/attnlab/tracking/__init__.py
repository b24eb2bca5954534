"""What a run leaves behind: its folder, which is the truth, and a mirror of it in W&B."""
