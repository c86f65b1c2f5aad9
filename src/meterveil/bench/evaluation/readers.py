"""Who attacks when nobody is named: the same in every evaluation and in every table."""

from __future__ import annotations

from collections.abc import Mapping

from meterveil.attackers.registry import PAPER_SIX
from meterveil.bench.cards import ThreatModel

EVERY_ATTACKER = (*PAPER_SIX, "nilmformer")
"""Those of meterveil itself that look at the meter."""

DEFAULT_ATTACKERS: Mapping[ThreatModel, tuple[str, ...]] = {
    "fixed": PAPER_SIX,
    "adaptive": ("fhmm", "bert4nilm"),
}
"""Threat model -> attackers: the paper's six; those that adapt are fitted for every policy, so the best
classical and the best neural reader of clean days."""
