"""A seeded household that behaves like the measured ones: the embedded default and the data of the tests."""

from meterveil.data.synthetic.house import household
from meterveil.data.synthetic.machines import decoy_library, decoy_signatures

__all__ = ["decoy_library", "decoy_signatures", "household"]
