import torch

from meterveil.attackers.electricity import PRETRAINING, WINDOW, Network, loss
from meterveil.attackers.examples import Batch


def batch():
    torch.manual_seed(0)
    return Batch(
        torch.randn(2, 1, WINDOW), torch.randn(2, 3, WINDOW), torch.zeros(2, 3, WINDOW), torch.ones(3, 1)
    )


def gradients(network, done):
    torch.manual_seed(1)
    network.zero_grad()
    loss(network, batch(), done).backward()
    return {name: weight.grad for name, weight in network.named_parameters() if weight.grad is not None}


def test_the_generator_is_64_wide_and_the_discriminator_256():
    network = Network(3)
    assert network.generator.embed.weight.shape == (64, 1, 5)
    assert network.discriminator.embed.weight.shape == (256, 1, 5)


def test_pre_training_never_looks_at_the_target():
    network, windows = Network(3).eval(), batch()
    seen = []
    for part in (windows, windows._replace(power=windows.power + 9.0, on=1.0 - windows.on)):
        torch.manual_seed(1)
        seen.append(loss(network, part, 0.0).item())
    assert seen[0] == seen[1]


def test_pre_training_moves_both_networks_and_fine_tuning_only_the_discriminator():
    network = Network(3)
    parts = {name.split(".")[0] for name in gradients(network, 0.0)}
    assert parts == {"generator", "discriminator"}
    assert {name.split(".")[0] for name in gradients(network, PRETRAINING)} == {"discriminator"}


def test_the_generator_is_not_taught_to_fool():
    network = Network(3).eval()
    before = gradients(network, 0.0)["generator.embed.weight"].clone()
    with torch.no_grad():
        network.discriminator.leave[2].weight.mul_(-5.0)
    assert torch.equal(gradients(network, 0.0)["generator.embed.weight"], before)
