"""Networks as published, and the changes for one-minute data that their modules name."""

import pytest
import torch

from meterveil.attackers import bert4nilm, dae, electricity, nilmformer, seq2point
from meterveil.attackers.bert4nilm import MASKED, disaggregation_loss, masked
from meterveil.attackers.examples import Batch


def batch(window=128):
    """Two windows with three targets that are on a quarter of the time."""
    torch.manual_seed(0)
    on = (torch.arange(window) % 16 < 4).float().expand(2, 3, -1)
    return Batch(torch.randn(2, 1, window), 3.0 * on, on, torch.ones(3, 1))


def test_dae_sees_the_level_of_the_house():
    network, seen = dae.Network(3), batch().seen
    assert not torch.allclose(network(seen), network(seen + 1.0))


def test_of_the_chosen_minutes_eight_in_ten_are_masked_and_one_in_ten_is_random():
    torch.manual_seed(0)
    seen = torch.full((1, 1, 200_000), 7.0)
    hidden, chosen = masked(seen, 0.25)
    assert float(chosen.float().mean()) == pytest.approx(0.25, abs=0.01)
    assert torch.equal(hidden[~chosen], seen[~chosen])
    assert float((hidden[chosen] == MASKED).float().mean()) == pytest.approx(0.8, abs=0.01)
    assert float((hidden[chosen] == 7.0).float().mean()) == pytest.approx(0.1, abs=0.01)


def test_bert4nilm_masks_minutes_only_in_the_first_part_of_the_training():
    model, windows = bert4nilm.network(3).eval(), batch()
    early, late = (
        [bert4nilm.loss(model, windows, done).item() for _ in range(2)] for done in (0.0, bert4nilm.MASKED_UNTIL)
    )
    assert early[0] != early[1]
    assert late[0] == late[1]


def test_the_disaggregation_loss_is_least_for_the_truth_and_each_of_its_parts_counts():
    truth = batch()
    sure = 20.0 * (2.0 * truth.on - 1.0)

    def loss(power, logit):
        return float(disaggregation_loss(torch.stack([power, logit], 1), truth))

    flat = truth.power.mean(2, keepdim=True).expand_as(truth.power)
    assert loss(truth.power, sure) == pytest.approx(0.0, abs=1e-5)
    assert loss(truth.power + 1.0, sure) > 1.0
    assert loss(truth.power, -sure) > 10.0
    assert loss(truth.power.roll(2, 2), sure) > loss(flat, sure) > loss(truth.power, sure)
    answer = torch.zeros(2, 2, 3, 128, requires_grad=True)
    disaggregation_loss(answer, truth).backward()
    assert (answer.grad[:, 1] != 0).all()


def gradients(network, done, windows=None):
    torch.manual_seed(1)
    network.zero_grad()
    electricity.loss(network, windows or batch(), done).backward()
    return {name: weight.grad.clone() for name, weight in network.named_parameters() if weight.grad is not None}


def test_electricity_pre_trains_both_networks_without_targets_and_fine_tunes_the_discriminator():
    network, windows = electricity.Network(3).eval(), batch()
    assert network.generator.embed.weight.shape == (64, 1, 5)
    assert network.discriminator.embed.weight.shape == (256, 1, 5)
    pretraining = gradients(network, 0.0, windows)
    other = gradients(network, 0.0, windows._replace(power=windows.power + 9.0, on=1.0 - windows.on))
    assert {name.split(".")[0] for name in pretraining} == {"generator", "discriminator"}
    assert all(torch.equal(pretraining[name], other[name]) for name in pretraining)
    tuning = gradients(network, electricity.PRETRAINING, windows)
    assert {name.split(".")[0] for name in tuning} == {"discriminator"}


def test_the_discriminator_of_electricity_does_not_train_the_generator():
    network = electricity.Network(3).eval()
    before = gradients(network, 0.0)["generator.embed.weight"]
    with torch.no_grad():
        network.discriminator.leave[2].weight.mul_(-5.0)
    assert torch.equal(gradients(network, 0.0)["generator.embed.weight"], before)


@pytest.fixture
def nilm_network():
    torch.manual_seed(0)
    return nilmformer.Network(3).eval()


def test_nilmformer_uses_the_clock_and_only_its_level_token_knows_the_level(nilm_network):
    assert nilmformer.nilmformer().recipe.clock
    seen = torch.randn(1, 5, nilmformer.WINDOW)
    other_clock, raised = seen.clone(), seen.clone()
    other_clock[:, 1:] *= -1.0
    raised[:, 0] += 4.0
    assert not torch.allclose(nilm_network(seen), nilm_network(other_clock))
    assert not torch.allclose(nilm_network(seen), nilm_network(raised))
    with torch.no_grad():
        nilm_network.level.weight.zero_()
    torch.testing.assert_close(nilm_network(seen), nilm_network(raised), rtol=1e-3, atol=1e-4)


def point_network():
    torch.manual_seed(0)
    return seq2point.Network(3)


def window_by_window(model, seen):
    windows = seen.unfold(2, seq2point.WINDOW, 1).movedim(2, 1).flatten(0, 1)
    return model(windows).view(len(seen), -1, 2, 3).movedim(1, 3)


def test_seq2point_gives_for_a_stretch_what_it_gives_for_its_windows_one_by_one():
    model, seen = point_network(), torch.randn(2, 1, seq2point.WINDOW + 39)
    together, apart = model(seen), window_by_window(model, seen)
    assert together.shape == apart.shape == (2, 2, 3, 40)
    torch.testing.assert_close(together, apart, rtol=1e-4, atol=1e-5)


def test_the_loss_of_seq2point_uses_every_fourth_minute():
    model, seen = point_network(), torch.randn(1, 1, seq2point.WINDOW - 1 + seq2point.STRETCH)
    every = seq2point.EVERY
    torch.testing.assert_close(model.answer(seen, every), model(seen)[..., ::every], rtol=1e-4, atol=1e-5)
    power, on = torch.randn(1, 3, seq2point.STRETCH), torch.zeros(1, 3, seq2point.STRETCH)
    before = seq2point.loss(model, Batch(seen, power, on, torch.ones(3, 1)), 0.0)
    unused = power.clone()
    unused[..., 1::every] += 5.0
    assert seq2point.loss(model, Batch(seen, unused, on, torch.ones(3, 1)), 0.0) == before
