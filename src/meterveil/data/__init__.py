"""Readers that turn raw files into a checked `Household`, and everything that is computed from one."""
