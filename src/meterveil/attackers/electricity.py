"""ELECTRIcity: S. Sykiotis et al., "ELECTRIcity: an efficient transformer for NILM", Sensors 22, 2022.

Two networks of BERT4NILM's make: while pre-training, a small generator fills in masked minutes of the
aggregate and a discriminator learns to tell which minutes are made up; then it alone learns the target.

Wiring: the paper's, as in ELECTRA. The published code gives the generator the detection loss, and the
discriminator the target already in pre-training: losses on the wrong networks, which are not followed.
Original: a network for each appliance, 48 minutes at 6 s, 10 epochs of pre-training and 90 of fine-tuning,
Adam 1e-4, batch 64. For one-minute data: one network for all appliances, 128 minutes and larger steps, of
which the first tenth pre-trains, as published.
"""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor, nn

from meterveil.attackers.examples import Batch
from meterveil.attackers.neural import Neural
from meterveil.attackers.supervised import Recipe
from meterveil.attackers.transformer import WindowTransformer, disaggregation_loss, masked

VERSION = 1
"""Part of the key of a stored fit; raise it when a change alters the figures of this attacker."""

WINDOW = 128
MASKED_SHARE = 0.25
PRETRAINING = 0.1
"""Share of the training that needs no target."""


class Network(nn.Module):
    """Map (batch, 1, window) readings to (batch, 2, target, window): the discriminator answers."""

    def __init__(self, targets: int, window: int = WINDOW, width: int = 256) -> None:
        super().__init__()
        self.generator = WindowTransformer(window, width // 4, outputs=1)
        self.discriminator = WindowTransformer(window, width, outputs=2 * targets + 1)
        self.split = nn.Unflatten(1, (2, targets))

    def forward(self, seen: Tensor) -> Tensor:
        """Answer for every minute of the window."""
        return cast(Tensor, self.split(self.discriminator(seen)[:, :-1]))

    def pretrain(self, seen: Tensor) -> Tensor:
        """Judge how well minutes are made up, and how well they are found out."""
        hidden, chosen = masked(seen, MASKED_SHARE)
        invented = self.generator(hidden)
        generating = torch.mean((invented - seen)[chosen] ** 2)
        shown = torch.where(chosen, invented.detach(), seen)
        suspicion = self.discriminator(shown)[:, -1]
        return generating + nn.functional.binary_cross_entropy_with_logits(suspicion, chosen[:, 0].float())


def loss(network: nn.Module, batch: Batch, done: float) -> Tensor:
    """Pre-train without the target, then learn it."""
    if done < PRETRAINING:
        return cast(Network, network).pretrain(batch.seen)
    return disaggregation_loss(network(batch.seen), batch)


def electricity() -> Neural:
    """Build the attacker with its documented settings."""
    return Neural(
        Recipe(
            build=Network,
            loss=loss,
            window=WINDOW,
            output=WINDOW,
            mixing=0.75,
            stacking=0.3,
            overlap=2,
            batch=4,
            epochs=90,
            patience=30,
            learning_rate=3e-4,
        )
    )
