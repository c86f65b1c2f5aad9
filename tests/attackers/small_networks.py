"""Every attacker of the registry in a form that learns within a test."""

from dataclasses import fields, replace
from functools import partial

from torch import nn

from meterveil.attackers import electricity
from meterveil.attackers.bert4nilm import WindowTransformer
from meterveil.attackers.registry import attacker

WINDOW = 32


def bert4nilm(targets):
    return nn.Sequential(WindowTransformer(WINDOW, 32, 2 * targets), nn.Unflatten(1, (2, targets)))


SHORTER = {
    "bert4nilm": {"build": bert4nilm},
    "electricity": {"build": partial(electricity.Network, window=WINDOW, width=32)},
    "nilmformer": {},
}
"""Transformers, whose work grows with the square of the window -> what else shrinks with it."""


def small(name, **changes):
    """The attacker as registered; of a network the same recipe with these changes, transformers shrunk."""
    full = attacker(name)
    if not hasattr(full, "recipe"):
        return full
    shrunk = {"window": WINDOW, "output": WINDOW, **SHORTER[name]} if name in SHORTER else {}
    if name == "informed":
        shrunk = {"width": 8, "members": 1, "copies": 8, "chain": 2}
        known = {field.name for field in fields(full.recipe)}
        changes = {key: value for key, value in changes.items() if key in known}
    return replace(full, recipe=replace(full.recipe, **shrunk, **changes))


def quickly(name):
    """Learn just enough to say something."""
    return small(name, epochs=1, windows=8)
