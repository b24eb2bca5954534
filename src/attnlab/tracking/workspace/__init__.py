"""A study in W&B: `attnlab workspace` saves a workspace and a report for it, and writes its grid as a W&B sweep."""
