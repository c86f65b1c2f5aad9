"""ELECTRIcity: S. Sykiotis et al., "ELECTRIcity: an efficient transformer for NILM", Sensors 22, 2022.

Two networks of BERT4NILM's architecture. In pre-training a small generator fills in masked minutes of the
aggregate and a discriminator detects which minutes were generated; then the discriminator learns the target.

The losses follow the paper, as in ELECTRA. The published code gives the detection loss to the generator and
the target to the discriminator already in pre-training, which contradicts the paper. Original: a network for
each appliance, 48 minutes at 6 s, 10 epochs of pre-training and 90 of fine-tuning, Adam 1e-4, batch 64.
Changes for one-minute data: one network for all appliances, 128 minutes and larger steps, of which the first
tenth pre-trains, as published.
"""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor, nn

from meterveil.attackers.bert4nilm import WindowTransformer, disaggregation_loss, masked, window_recipe
from meterveil.attackers.examples import Batch
from meterveil.attackers.neural import Neural

VERSION = 1  # raise it when a change alters the figures of this attacker

WINDOW = 128
MASKED_SHARE = 0.25
PRETRAINING = 0.1
"""Share of the training that is pre-training, without targets."""


class Network(nn.Module):
    """Network from (batch, 1, window) readings to (batch, 2, target, window), by its discriminator."""

    def __init__(self, targets: int, window: int = WINDOW, width: int = 256) -> None:
        super().__init__()
        self.generator = WindowTransformer(window, width // 4, outputs=1)
        self.discriminator = WindowTransformer(window, width, outputs=2 * targets + 1)
        self.split = nn.Unflatten(1, (2, targets))

    def forward(self, seen: Tensor) -> Tensor:
        return cast(Tensor, self.split(self.discriminator(seen)[:, :-1]))

    def pretrain(self, seen: Tensor) -> Tensor:
        """Return the loss of generating masked minutes plus the loss of detecting them."""
        hidden, chosen = masked(seen, MASKED_SHARE)
        generated = self.generator(hidden)
        generating = torch.mean((generated - seen)[chosen] ** 2)
        shown = torch.where(chosen, generated.detach(), seen)
        detected = self.discriminator(shown)[:, -1]
        return generating + nn.functional.binary_cross_entropy_with_logits(detected, chosen[:, 0].float())


def loss(network: nn.Module, batch: Batch, done: float) -> Tensor:
    """Return the pre-training loss first, then the loss of the targets."""
    if done < PRETRAINING:
        return cast(Network, network).pretrain(batch.seen)
    return disaggregation_loss(network(batch.seen), batch)


def electricity() -> Neural:
    """Build the attacker with its documented settings."""
    return Neural(window_recipe(Network, loss, WINDOW, epochs=90, learning_rate=3e-4))
