"""No defence: the battery rests and the meter tells everything."""

from meterveil.core.executor import Command, idle
from meterveil.core.rollout import View

VERSION = 1
"""Raise it when a change alters what this defence does."""


class NoDefence:
    """Idle always."""

    def initial(self, batch: int) -> None:
        """Remember nothing."""

    def decide(self, view: View, memory: None) -> tuple[Command, None]:
        """Do nothing for a minute."""
        return idle(view.library, len(view.load_w)), memory
