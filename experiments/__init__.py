"""Studies that make the figures of the documentation; run each from the root of the repository."""
