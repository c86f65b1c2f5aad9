"""A seeded household that behaves like the measured ones: the embedded default and the data of the tests."""

from meterveil.data.synthetic.decoys import decoy_library, decoy_signatures
from meterveil.data.synthetic.house import household

__all__ = ["decoy_library", "decoy_signatures", "household"]
