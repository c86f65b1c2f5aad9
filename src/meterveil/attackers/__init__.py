"""Attackers: each one file, each an `Attacker` that learns from households and reads their meters."""
