"""Synthetic household, drawn from a seed, that resembles measured ones: the default and test data."""

from meterveil.data.synthetic.house import household
from meterveil.data.synthetic.machines import decoy_library, decoy_signatures

__all__ = ["decoy_library", "decoy_signatures", "household"]
