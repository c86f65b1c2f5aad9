"""No defence: the battery rests."""

from dataclasses import dataclass

from meterveil.core.executor import Command, idle
from meterveil.core.rollout import View

VERSION = 1  # raise it when a change alters what this defence does


@dataclass(frozen=True)
class NoDefence:
    """Policy that never uses the battery."""

    def initial(self, batch: int) -> None:
        """Return no memory."""

    def decide(self, view: View, memory: None) -> tuple[Command, None]:
        return idle(view.library, len(view.load_w)), memory
