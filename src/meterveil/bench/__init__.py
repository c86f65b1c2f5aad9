"""Benchmarks: what an attack or a defence is worth, and what the paper says that it is."""
