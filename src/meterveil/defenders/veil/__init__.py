"""The veil: a meter that shows chosen levels and decoys, with a certificate of what it can tell (D18)."""
