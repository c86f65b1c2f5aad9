import pytest
import torch

from meterveil.attackers.bert4nilm import MASKED_UNTIL, WINDOW, loss, network
from meterveil.attackers.examples import Batch
from meterveil.attackers.transformer import MASKED, disaggregation_loss, masked


def batch(windows=2):
    on = (torch.arange(WINDOW) % 16 < 4).float().expand(windows, 3, -1)
    return Batch(torch.randn(windows, 1, WINDOW), 3.0 * on, on, torch.ones(3, 1))


def test_the_body_is_as_wide_and_deep_as_published():
    model = network(2)[0]
    assert model.embed.weight.shape == (256, 1, 5)
    assert model.position.shape == (WINDOW // 2, 256)
    assert len(model.blocks) == 2
    assert model.blocks[0].self_attn.num_heads == 2
    assert model.blocks[0].linear1.weight.shape == (1024, 256)
    assert model.leave[0].weight.shape == (128, 256)


def test_of_the_chosen_minutes_eight_in_ten_are_masked_and_one_in_ten_is_random():
    torch.manual_seed(0)
    seen = torch.full((1, 1, 200_000), 7.0)
    hidden, chosen = masked(seen, 0.25)
    assert float(chosen.float().mean()) == pytest.approx(0.25, abs=0.01)
    assert torch.equal(hidden[~chosen], seen[~chosen])
    assert float((hidden[chosen] == MASKED).float().mean()) == pytest.approx(0.8, abs=0.01)
    assert float((hidden[chosen] == 7.0).float().mean()) == pytest.approx(0.1, abs=0.01)


def test_minutes_are_hidden_at_first_and_shown_in_the_end():
    model, windows = network(3).eval(), batch()
    early = [loss(model, windows, 0.0).item() for _ in range(2)]
    late = [loss(model, windows, MASKED_UNTIL).item() for _ in range(2)]
    assert early[0] != early[1]
    assert late[0] == late[1]


def test_the_loss_is_least_for_the_truth_and_each_of_its_parts_counts():
    truth = batch()
    sure = 20.0 * (2.0 * truth.on - 1.0)
    right = float(disaggregation_loss(torch.stack([truth.power, sure], 1), truth))
    assert right == pytest.approx(0.0, abs=1e-5)
    assert disaggregation_loss(torch.stack([truth.power + 1.0, sure], 1), truth) > 1.0
    assert disaggregation_loss(torch.stack([truth.power, -sure], 1), truth) > 10.0
    shifted = torch.stack([truth.power.roll(2, 2), sure], 1)
    flat = torch.stack([truth.power.mean(2, keepdim=True).expand_as(truth.power), sure], 1)
    assert disaggregation_loss(shifted, truth) > disaggregation_loss(flat, truth) > right


def test_the_state_teaches_the_network():
    answer = torch.zeros(2, 2, 3, WINDOW, requires_grad=True)
    disaggregation_loss(answer, batch()).backward()
    assert (answer.grad[:, 1] != 0).all()
