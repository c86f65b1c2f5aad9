"""Measures defences: what attackers still read behind each, and what each asks of the battery."""
