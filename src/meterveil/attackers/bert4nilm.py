"""BERT4NILM: Z. Yue et al., "BERT4NILM: a bidirectional transformer model for NILM", NILM workshop 2020."""

from __future__ import annotations

from torch import Tensor, nn

from meterveil.attackers.examples import Batch
from meterveil.attackers.neural import Neural
from meterveil.attackers.supervised import Recipe
from meterveil.attackers.transformer import WindowTransformer, disaggregation_loss, masked

WINDOW = 128
MASKED_SHARE = 0.25
MASKED_UNTIL = 0.3
"""Share of the training after which the windows are whole, as they are in use."""


def network() -> nn.Module:
    """Build two layers of attention, 256 wide."""
    return WindowTransformer(WINDOW, width=256, outputs=2)


def loss(network: nn.Module, batch: Batch, done: float) -> Tensor:
    """Judge what the network says of windows from which minutes are missing."""
    seen = masked(batch.seen, MASKED_SHARE)[0] if done < MASKED_UNTIL else batch.seen
    return disaggregation_loss(network(seen), batch)


def bert4nilm() -> Neural:
    """Build the attacker with its documented settings."""
    return Neural(
        Recipe(
            build=network,
            loss=loss,
            window=WINDOW,
            output=WINDOW,
            stride=64,
            overlap=2,
            batch=4,
            epochs=30,
            patience=15,
            learning_rate=1e-3,
        )
    )
