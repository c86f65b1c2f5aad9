"""The paper's defence: a manager that learns by PPO which signature to replay, and its probes."""
