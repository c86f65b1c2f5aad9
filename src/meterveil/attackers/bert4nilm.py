"""BERT4NILM: Z. Yue et al., "BERT4NILM: a bidirectional transformer model for NILM", NILM workshop 2020.

A convolution, pooling to half as many tokens, learned positions, two layers of attention (256 wide, two
heads, 1,024 hidden units), and back to minutes. A quarter of the minutes of a training window is masked.

Original: a network for each appliance, 480 samples of 6 s (48 minutes), Adam 1e-4, batch 128, up to 100
epochs, float64, losses on the masked minutes alone, targets divided by a cutoff. Changes for one-minute data:
one network for all appliances, with a wider last layer; 128 minutes; masking only in the first part of the
training, and losses on all minutes, since a masked minute may be half of a kettle's use and its neighbours do
not show it; fewer, larger steps; targets in standard deviations, so that no cutoff is needed.
"""

from __future__ import annotations

from torch import Tensor, nn

from meterveil.attackers.examples import Batch
from meterveil.attackers.neural import Neural
from meterveil.attackers.transformer import WindowTransformer, disaggregation_loss, masked, window_recipe

VERSION = 1  # raise it when a change alters the figures of this attacker

WINDOW = 128
MASKED_SHARE = 0.25
MASKED_UNTIL = 0.3
"""Share of the training after which windows are complete, as in prediction."""


def network(targets: int) -> nn.Module:
    """Build two layers of attention, 256 wide."""
    return nn.Sequential(
        WindowTransformer(WINDOW, width=256, outputs=2 * targets), nn.Unflatten(1, (2, targets))
    )


def loss(network: nn.Module, batch: Batch, done: float) -> Tensor:
    """Return the loss, on masked windows in the first part of the training."""
    seen = masked(batch.seen, MASKED_SHARE)[0] if done < MASKED_UNTIL else batch.seen
    return disaggregation_loss(network(seen), batch)


def bert4nilm() -> Neural:
    """Build the attacker with its documented settings."""
    return Neural(window_recipe(network, loss, WINDOW, epochs=90, learning_rate=3e-4))
