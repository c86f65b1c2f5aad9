"""Benchmarks: trials, metrics, evaluations, attacks, the table of results, and the paper's tables."""
