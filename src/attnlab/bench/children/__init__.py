"""Children that do not train a system for the training section: see child.py for how they are started."""
