import torch

from meterveil.attackers.dae import WINDOW, Network, dae


def test_the_layers_are_as_wide_as_published():
    shapes = {
        name: tuple(weight.shape) for name, weight in Network(3, 64).named_parameters() if "weight" in name
    }
    inner = (64 - 3) * 8
    assert shapes == {
        "encode.0.weight": (8, 1, 4),
        "encode.2.weight": (inner, inner),
        "encode.4.weight": (3 * 128, inner),
        **{f"decode.{target}.0.weight": (inner, 128) for target in range(3)},
        **{f"decode.{target}.3.weight": (8, 2, 4) for target in range(3)},
    }


def test_the_level_of_the_house_is_seen():
    torch.manual_seed(0)
    network, seen = Network(3), torch.randn(1, 1, WINDOW)
    assert not torch.allclose(network(seen), network(seen + 1.0))


def test_half_of_the_training_is_on_synthetic_aggregates():
    assert dae().recipe.mixing == 0.5
