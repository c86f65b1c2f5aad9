"""Old address of `cli.base.errors_in_one_line`, until the studies under bench have moved to experiments."""

from meterveil.cli.base import errors_in_one_line as ending_in_one_line

__all__ = ["ending_in_one_line"]
