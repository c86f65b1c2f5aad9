"""FHMM, the attacker that models a home as a factorial hidden Markov model."""
