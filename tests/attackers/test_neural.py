from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from small_networks import small

from meterveil.attackers import dae
from meterveil.attackers.examples import Examples, scaling_of, series_of
from meterveil.attackers.neural import Recipe, _epoch, _fitting, power_and_state_loss, train, validation_loss
from meterveil.attackers.protocol import AGGREGATE
from meterveil.attackers.registry import NETWORKS, attacker
from meterveil.contracts.attackers import home
from meterveil.data.splits import training_and_validation_days
from meterveil.errors import InputError

PUBLISHED = {name: attacker(name) for name in NETWORKS if name != "informed"}
RNG = partial(np.random.default_rng, 0)
EVERY = pytest.mark.parametrize("name", PUBLISHED)


def examples(household, recipe, targets=("kettle",)):
    days = training_and_validation_days(household)
    series = [series_of(household, targets, part) for part in days]
    scaling = scaling_of(series[0], targets)
    return [Examples.of(part, targets, scaling, recipe.window, recipe.output, recipe.clock) for part in series]


@EVERY
def test_a_network_estimates_the_middle_of_its_window_from_all_of_it(name):
    recipe = PUBLISHED[name].recipe
    torch.manual_seed(0)
    network, seen = recipe.build(4).eval(), torch.randn(3, 5 if recipe.clock else 1, recipe.window)
    other = seen.clone()
    other[:, 0, recipe.window // 2 + 20] += 3.0
    first, second = network(seen), network(other)
    assert first.shape == (3, 2, 4, recipe.output)
    assert (recipe.window - recipe.output) % 2 == 0
    middle = recipe.output // 2
    assert not torch.equal(first[..., middle], second[..., middle])


@EVERY
def test_a_network_has_single_precision_weights_that_all_are_learned(name):
    recipe = PUBLISHED[name].recipe
    network = recipe.build(1).train()
    batch = examples(home(), recipe)[0]
    batch = batch.batch(batch.uses[0].starts[:4])
    for done in (0.0, 1.0):
        recipe.loss(network, batch, done).backward()
    for label, weight in network.named_parameters():
        assert weight.dtype == torch.float32, label
        assert weight.grad is not None, label
        assert torch.isfinite(weight.grad).all(), label
        assert (weight.grad != 0).any(), label


def drifting(epochs):
    """A recipe whose loss differs from the validation loss, so that most epochs make it worse."""
    return Recipe(
        build=lambda targets: dae.Network(targets, 16),
        loss=lambda network, batch, done: (network(batch.seen)[:, 0] - 50.0 * done).square().mean(),
        window=16,
        output=16,
        windows=70,
        epochs=epochs,
        patience=3,
        learning_rate=1e-2,
        averaging=0.0,
    )


def test_training_stops_when_patience_is_over_and_keeps_the_best_weights():
    recipe = drifting(epochs=50)
    learning, choosing = examples(home(), recipe)
    network = recipe.build(1)
    losses = train(network, recipe, learning, choosing, RNG())
    assert len(losses) < 50
    assert len(losses) - 1 - int(np.argmin(losses)) == 3
    assert validation_loss(network, recipe, choosing) == min(losses)


def test_a_training_without_a_finite_loss_is_an_error():
    recipe = drifting(epochs=2)
    recipe = replace(recipe, loss=lambda network, batch, done: network(batch.seen).sum() * float("nan"))
    learning, choosing = examples(home(), recipe)
    with pytest.raises(InputError, match="loss is not finite"):
        train(recipe.build(1), recipe, learning, choosing, RNG())


def test_the_validation_days_change_neither_the_scaling_nor_the_weights():
    calm, wild = home(), home()
    wild.aggregate_w[-1440:] *= 3.0
    first, second = (small("dae", epochs=1).fit([house], ["kettle"], RNG()).arrays() for house in (calm, wild))
    assert all(np.array_equal(first[label], second[label]) for label in first)


def test_a_mixed_window_keeps_its_background_and_gets_the_donors_use():
    recipe = small("dae").recipe
    part = examples(home(), recipe)[0]
    own, donor = part.starts[[300]], part.uses[0].starts[[0]]
    mixed, before, given = part.mixed(own, donor[None]), part.batch(own), part.batch(donor)
    drawn = part.drawn[0]
    share = drawn[donor[0] : donor[0] + recipe.window] - drawn[own[0] : own[0] + recipe.window]
    torch.testing.assert_close(mixed.seen[0, 0], before.seen[0, 0] + share)
    assert torch.equal(mixed.power, given.power)
    assert torch.equal(mixed.on, given.on)
    assert given.on.any()


def test_the_aggregate_of_a_mixed_window_is_what_its_meter_shows():
    recipe = small("dae", mixing=1.0, stacking=1.0).recipe
    part = examples(home(), recipe, targets=("kettle", AGGREGATE, "fridge"))[0]
    for batch in _epoch(part, recipe, RNG()):
        torch.testing.assert_close(batch.seen[:, 0], batch.power[:, 1])


def masked_home():
    """A home whose meter is unrelated to its load."""
    clean = home()
    truth = clean.appliances_w | {AGGREGATE: clean.aggregate_w}
    shown_w = np.random.default_rng(1).uniform(200.0, 300.0, len(clean.minutes))
    return replace(clean, aggregate_w=shown_w, appliances_w=truth)


def test_the_aggregate_of_a_masked_home_is_its_true_load():
    masked, targets = masked_home(), ("kettle", AGGREGATE)
    series = series_of(masked, targets, masked.days())
    scaling = scaling_of(series, targets)
    part = Examples.of(series, targets, scaling, 32, 32, clock=False)
    batch = part.batch(part.starts[:1])
    drawn_w = batch.power[0, 1].numpy() * scaling.power_factor_w[1] + scaling.power_shift_w[1]
    shown_w = batch.seen[0, 0].numpy() * scaling.reading_factor_w + scaling.reading_shift_w
    np.testing.assert_allclose(drawn_w, masked.appliances_w[AGGREGATE][:32], rtol=1e-3)
    np.testing.assert_allclose(shown_w, masked.aggregate_w[:32], rtol=1e-3)


@pytest.mark.parametrize(("household", "is_unchanged"), [(home(), False), (masked_home(), True)])
def test_windows_are_mixed_unless_the_home_is_masked(household, is_unchanged):
    used = _fitting(small("dae", mixing=1.0, stacking=1.0).recipe, [household])
    part = examples(household, used, targets=("kettle", AGGREGATE))[0]
    seen = torch.cat([batch.seen[:, 0] for batch in _epoch(part, used, RNG())]).reshape(-1)
    assert bool(torch.isin(seen, part.seen[0]).all()) == is_unchanged


def test_rare_uses_and_rare_peaks_are_drawn_more_often_than_they_occur():
    household, recipe = home(), small("dae", mixing=1.0).recipe
    kettle_w = household.appliances_w["kettle"]
    kettle_w[kettle_w > 0] = 1200.0
    rare = int(np.flatnonzero(kettle_w > 0)[5])
    kettle_w[rare] = 3000.0
    part = examples(household, recipe, targets=("kettle", "fridge"))[0]
    uses, odds = part.uses[0].starts, part.uses[0].odds
    kettle = torch.cat([batch.on[:, 0] for batch in _epoch(part, recipe, RNG())]).amax(dim=1).mean()
    assert kettle > 1.5 * len(uses) / len(part.starts)
    strong = (uses <= rare) & (rare < uses + part.window)
    assert strong.any()
    assert odds.sum() == pytest.approx(1.0)
    assert odds[strong].sum() > 1.5 * strong.mean()


def test_a_use_is_a_window_with_the_target_on_in_an_estimated_minute():
    part = examples(home(2), PUBLISHED["seq2point"].recipe)[0]
    on = {int(start) for start in part.starts if part.batch(np.array([start])).on.any()}
    assert on == set(part.uses[0].starts.tolist())


def test_days_without_a_whole_window_are_refused():
    broken = home()
    broken.aggregate_w[::50] = np.nan
    with pytest.raises(InputError, match="no stretch of 128 minutes without a gap"):
        small("dae").fit([broken], ["kettle"], RNG())


def test_the_loss_has_power_and_state():
    batch = examples(home(), small("dae").recipe)[0]
    batch = batch.batch(batch.uses[0].starts[:2])

    def answer(power, logit):
        return lambda seen: torch.stack([power, logit], dim=1)

    right, sure = batch.power, 20.0 * (2.0 * batch.on - 1.0)
    assert power_and_state_loss(answer(right, sure), batch, 0.0) < 1e-6
    assert power_and_state_loss(answer(right + 1.0, sure), batch, 0.0) > 0.99
    assert power_and_state_loss(answer(right, -sure), batch, 0.0) > 10.0
