"""The report: measured figures beside the paper's, read from `results/` alone."""
