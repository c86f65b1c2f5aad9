import numpy as np
import torch

from meterveil.attackers.examples import Batch
from meterveil.attackers.neural import power_and_state_loss
from meterveil.attackers.seq2point import EVERY, STRETCH, WINDOW, Network, loss, seq2point


def network():
    torch.manual_seed(0)
    return Network(3)


def window_by_window(model, seen):
    windows = seen.unfold(2, WINDOW, 1).movedim(2, 1).flatten(0, 1)
    return model(windows).view(len(seen), -1, 2, 3).movedim(1, 3)


def test_the_stretch_is_answered_like_its_windows_one_by_one():
    model, seen = network(), torch.randn(2, 1, WINDOW + 39)
    together, apart = model(seen), window_by_window(model, seen)
    assert together.shape == apart.shape == (2, 2, 3, 40)
    torch.testing.assert_close(together, apart, rtol=1e-4, atol=1e-5)


def test_the_weights_move_like_those_of_the_windows_one_by_one():
    seen, power, on = torch.randn(2, 1, WINDOW + 15), torch.randn(2, 3, 16), torch.ones(2, 3, 16)
    gradients = []
    for answer in (lambda model: model, lambda model: lambda stretch: window_by_window(model, stretch)):
        model = network()
        power_and_state_loss(answer(model), Batch(seen, power, on, torch.ones(3, 1)), 0.0).backward()
        gradients.append([weight.grad for weight in model.parameters()])
    for together, apart in zip(*gradients, strict=True):
        torch.testing.assert_close(together, apart, rtol=1e-3, atol=1e-5)


def test_training_answers_for_every_fourth_minute_of_the_same_answer():
    model, seen = network(), torch.randn(1, 1, WINDOW - 1 + STRETCH)
    torch.testing.assert_close(model.answer(seen, EVERY), model(seen)[..., ::EVERY], rtol=1e-4, atol=1e-5)
    power, on = torch.randn(1, 3, STRETCH), torch.zeros(1, 3, STRETCH)
    before = loss(model, Batch(seen, power, on, torch.ones(3, 1)), 0.0)
    unasked = power.clone()
    unasked[..., 1::EVERY] += 5.0
    assert loss(model, Batch(seen, unasked, on, torch.ones(3, 1)), 0.0) == before


def test_an_answer_hangs_on_its_own_window_alone():
    model, seen = network(), torch.randn(1, 1, WINDOW + 1)
    other = seen.clone()
    other[..., -1] += 3.0
    with torch.inference_mode():
        changed = (model(seen) != model(other)).any(dim=(1, 2))[0]
    assert changed.tolist() == [False, True]


def test_the_window_is_odd_and_has_a_middle():
    recipe = seq2point().recipe
    assert WINDOW % 2 == 1
    assert recipe.window - recipe.output == WINDOW - 1
    assert np.isclose((recipe.window - recipe.output) / 2, WINDOW // 2)
