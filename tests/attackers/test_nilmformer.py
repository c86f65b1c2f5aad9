import torch

from meterveil.attackers.nilmformer import WINDOW, Network, nilmformer


def network():
    torch.manual_seed(0)
    return Network(3).eval()


def window():
    torch.manual_seed(1)
    return torch.randn(1, 5, WINDOW)


def test_the_network_is_as_wide_and_deep_as_published():
    model = network()
    assert len(model.blocks) == 3
    assert model.blocks[0].self_attn.num_heads == 8
    assert model.norm.normalized_shape == (96,)
    assert [step[0].dilation for step in model.load.steps] == [(1,), (2,), (4,), (8,)]


def test_the_clock_counts():
    assert nilmformer().recipe.clock
    model, seen = network(), window()
    other = seen.clone()
    other[:, 1:] = -other[:, 1:]
    assert not torch.allclose(model(seen), model(other))


def test_only_the_level_token_knows_the_level_of_the_house():
    model, seen = network(), window()
    raised = seen.clone()
    raised[:, 0] += 4.0
    assert not torch.allclose(model(seen), model(raised))
    with torch.no_grad():
        model.level.weight.zero_()
    torch.testing.assert_close(model(seen), model(raised), rtol=1e-3, atol=1e-4)


def test_a_load_that_never_changes_is_answered():
    seen = torch.zeros(1, 5, WINDOW)
    assert torch.isfinite(network()(seen)).all()
