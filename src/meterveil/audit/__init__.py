"""Audit of a meter: uses of appliances, sleep and absence that its readings reveal, with probabilities."""
