"""Probes: what they are, what they learn from, and that they can be kept."""

from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest
import torch

from meterveil.data import synthetic
from meterveil.data.load import load
from meterveil.data.protocols import REDD_HOUSE2
from meterveil.defenders.manager import probes
from meterveil.defenders.manager.probes import Recipe, cut_minute, sample_segments, train_probe
from meterveil.errors import InputError

FEW = Recipe(segments=600, epochs=4)


@pytest.fixture(scope="module")
def home():
    return synthetic.household(np.random.default_rng(1), days=10)


@pytest.fixture(scope="module", autouse=True)
def _one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def test_the_paper_s_segments_never_share_a_minute_across_day_eight():
    aggregate_w = np.random.default_rng(0).gamma(2.0, 200.0, 14_400)
    assert cut_minute(14_400) == 11_520
    learning, validating = sample_segments(aggregate_w, 11_520, Recipe(), np.random.default_rng(3))
    assert len(learning) == len(validating) == 5000
    assert learning.max() + 60 <= 11_520 <= validating.min()
    assert len(np.unique(learning % 30)) > 5


def test_a_segment_with_an_unknown_minute_is_never_drawn():
    aggregate_w = np.ones(2880)
    aggregate_w[[500, 2600]] = np.nan
    for starts in sample_segments(aggregate_w, 2304, FEW, np.random.default_rng(0)):
        assert not np.isnan(aggregate_w[starts[:, None] + np.arange(60)]).any()


def test_a_record_without_a_whole_hour_on_both_sides_of_the_cut_is_refused():
    aggregate_w = np.ones(1440)
    aggregate_w[1152::30] = np.nan
    with pytest.raises(InputError, match="hold no whole hour on both sides of minute 1,152"):
        sample_segments(aggregate_w, 1152, FEW, np.random.default_rng(0))


@pytest.mark.parametrize(
    ("kind", "weights"),
    [
        ("transformer", 3 * (4 * 64 * 65 + 64 * 256 + 256 + 256 * 64 + 64 + 4 * 64) + 128 + 65),
        ("lstm", 50_497),
        ("cnn", 12_801),
        ("denoising", 2 * 32 * 5 + 32 + 3 * (32 * 32 * 5 + 32) + 33),
    ],
)
def test_the_networks_have_the_documented_sizes(kind, weights):
    network = probes.build(kind)
    assert sum(part.numel() for part in network.parameters()) == weights
    assert network(torch.zeros(3, 60)).shape == (3, 60)


@pytest.mark.parametrize(
    ("kind", "segments"), [("cnn", 600), ("denoising", 1600), pytest.param("lstm", 1600, marks=pytest.mark.slow)]
)
def test_a_trained_probe_explains_clean_days_that_it_has_not_seen(home, kind, segments):
    probe = train_probe(kind, home, home.days(), seed=0, recipe=replace(FEW, segments=segments))
    assert probe.quality["explained"] > 0.9
    assert 0.0 < probe.quality["rmse_w"] < 0.3 * probe.scaler.std


@pytest.mark.slow
def test_the_transformer_learns_too(home):
    losses = []
    recipe = replace(FEW, segments=320, epochs=4)
    train_probe("transformer", home, home.days(), 0, recipe, lambda epoch, loss: losses.append(loss))
    assert losses[-1] < 0.5 * losses[0]


def test_the_identity_reconstructs_everything_and_needs_no_training(home):
    probe = train_probe("identity", home, home.days(), seed=0, recipe=FEW)
    assert probe.quality["rmse_w"] == 0.0
    windows = np.random.default_rng(0).normal(size=(3, 60)).astype(np.float32)
    np.testing.assert_array_equal(probe.reconstruct(windows), windows)


def test_the_last_days_change_neither_scale_nor_weights(home):
    later = home.minutes >= home.minutes[11_520]
    other = replace(home, aggregate_w=np.where(later, home.aggregate_w * 3.0, home.aggregate_w))
    recipe = replace(FEW, epochs=1)
    first, second = (train_probe("cnn", part, part.days(), 0, recipe) for part in (home, other))
    assert first.scaler == second.scaler
    assert first.weights() == second.weights()
    assert first.quality != second.quality


def test_the_same_seed_gives_the_same_weights_and_leaves_torch_alone(home):
    before = torch.get_rng_state()
    recipe = replace(FEW, epochs=1)
    first, again = (train_probe("cnn", home, home.days(), 7, recipe) for _ in range(2))
    assert first.weights() == again.weights()
    assert first.weights() != train_probe("cnn", home, home.days(), 8, recipe).weights()
    assert torch.equal(torch.get_rng_state(), before)


def test_days_between_the_training_days_teach_nothing(home):
    days = home.days()
    chosen = [*days[:5], *days[7:]]
    hidden = home.day(days[6]).minutes
    other = replace(home, aggregate_w=np.where(home.minutes.isin(hidden), 5000.0, home.aggregate_w))
    recipe = replace(FEW, epochs=1)
    first, second = (train_probe("cnn", part, chosen, 0, recipe) for part in (home, other))
    assert first.weights() == second.weights()


@pytest.mark.parametrize("kind", sorted(probes.PROBES))
def test_a_probe_survives_the_disk(home, kind, tmp_path):
    network = probes.build(kind)
    if network is not None:
        network.eval()
    probe = probes.Probe(kind, probes.Scaler(300.0, 200.0), network, {"rmse_w": 1.5})
    probes.save(probe, tmp_path)
    loaded = probes.load(tmp_path)
    windows = np.random.default_rng(0).normal(size=(4, 60)).astype(np.float32)
    np.testing.assert_array_equal(loaded.reconstruct(windows), probe.reconstruct(windows))
    assert (loaded.kind, loaded.scaler, loaded.quality) == (kind, probe.scaler, probe.quality)


def test_a_missing_altered_or_foreign_probe_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"holds no probe \(probe.json and probe.safetensors\)"):
        probes.load(tmp_path)
    probes.save(probes.Probe("cnn", probes.Scaler(0.0, 1.0), probes.build("cnn")), tmp_path)
    weights = (tmp_path / probes.WEIGHTS).read_bytes()
    (tmp_path / probes.WEIGHTS).write_bytes(weights[:-1] + b"!")
    with pytest.raises(InputError, match=r"is not the file that probe.json was written for"):
        probes.load(tmp_path)
    (tmp_path / probes.CARD).write_text('{"format": "other"}')
    with pytest.raises(InputError, match="is not a card of"):
        probes.load(tmp_path)


def test_an_unknown_probe_and_a_day_that_was_not_recorded_are_refused(home):
    with pytest.raises(InputError, match="no probe 'oracle'; known are transformer, lstm, cnn, identity, denoising"):
        train_probe("oracle", home, home.days(), 0)
    with pytest.raises(InputError, match="does not record"):
        train_probe("cnn", home, [home.days()[-1] + timedelta(days=1)], 0)
    with pytest.raises(InputError, match="no days to train a probe on"):
        train_probe("cnn", home, [], 0)


def test_a_probe_reconstructs_a_real_house(real_data):
    house = load(real_data / "redd", 2, appliances=[])
    probe = train_probe("cnn", house, REDD_HOUSE2.training, 0, Recipe(segments=2000, epochs=4))
    assert probe.quality["explained"] > 0.95
