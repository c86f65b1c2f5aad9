"""The paper's defence: a manager that learns which signature to replay, and the probe that teaches it."""
