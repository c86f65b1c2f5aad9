"""What a defence does with its day: hours and deliveries, on days where the answer is known."""

import numpy as np
import pytest

from meterveil.bench import behaviour, observations
from meterveil.bench.behaviour import cards_of, delivery_of, hours_of
from meterveil.bench.observations import uniform
from meterveil.core.battery import Battery
from meterveil.core.executor import add_power
from meterveil.core.tariff import PAPER_TARIFF
from meterveil.data import synthetic
from meterveil.data.protocols import REDD_HOUSE2
from meterveil.data.simulation import Setup, episodes
from meterveil.defenders.defence import Defence, find_defence
from meterveil.plots.behaviour import hours_figure


class Charging:
    """Charges with 800 W whatever happens."""

    def initial(self, batch):
        return None

    def decide(self, view, memory):
        return add_power(view.library, np.full(len(view.load_w), 800.0)), memory


@pytest.fixture(scope="module")
def world():
    home = synthetic.household(np.random.default_rng(0), days=3)
    setup = Setup(synthetic.decoy_library(), Battery(), PAPER_TARIFF, 0)
    return setup, episodes(home, home.days(), PAPER_TARIFF)


def test_a_battery_that_only_charges_fills_up_and_stays_full(world):
    setup, scenario = world
    hours = hours_of(Defence("charging", (Charging(),)), setup, scenario)
    assert hours.soc[0] == pytest.approx(0.55, abs=0.01)
    np.testing.assert_allclose(hours.soc[5:], 0.9)
    np.testing.assert_allclose(hours.rms_w[:4], 800.0)
    np.testing.assert_allclose(hours.rms_w[5:], 0.0, atol=1e-6)
    assert hours.net_kwh == pytest.approx(0.4 * 8.0)
    assert hours.spent_hour == 24.0
    np.testing.assert_allclose(hours.budget_left[-1], 1.0 - 3.2 / 8.0)


def test_a_budget_is_spent_in_the_hour_in_which_it_ends(world):
    setup, scenario = world
    small = Setup(setup.library, Battery(budget_kwh=1.6), setup.tariff, 0)
    hours = hours_of(Defence("charging", (Charging(),)), small, scenario)
    assert hours.spent_hour == pytest.approx(1.5 / 0.8, abs=1 / 60)


def test_a_defence_that_rests_leaves_battery_and_budget_alone(world):
    hours = hours_of(find_defence("none"), *world)
    np.testing.assert_array_equal(hours.soc, 0.5)
    np.testing.assert_array_equal(hours.budget_left, 1.0)
    assert hours.net_kwh == 0.0


def test_chance_charges_as_often_as_it_discharges_but_discharging_is_clipped_to_the_load(world):
    setup, scenario = world
    chance = Defence("chance", (uniform(setup.library.n_actions),))
    found = delivery_of(chance, setup, scenario)
    assert found.charging_choices == pytest.approx(0.5, abs=0.1)
    assert 0.0 < found.discharged < found.charged < 1.0
    assert 0.0 < found.empty_choices < 1.0


def test_only_a_manager_has_choices_to_deliver(world):
    assert delivery_of(find_defence("flat"), *world) is None


def test_cards_hold_the_sums_and_the_picture_a_line_in_each_panel(world):
    setup, scenario = world
    chance = Defence("chance", (uniform(setup.library.n_actions),))
    hours = hours_of(chance, setup, scenario)
    cards = cards_of(chance, REDD_HOUSE2, hours, delivery_of(chance, setup, scenario), 3)
    assert {card.column for card in cards} >= {"spent_hour", "net_kwh", "soc_end", "discharged"}
    figure = hours_figure({"chance": hours, "flat": hours}, "two days")
    assert [trace.name for trace in figure.data] == ["chance"] * 3 + ["flat"] * 3


@pytest.mark.parametrize(
    ("command", "words"), [(behaviour, ("flat", "--on", "redd")), (observations, ("redd",))]
)
def test_what_cannot_be_meant_is_refused_in_one_line(command, words, monkeypatch, capsys, tmp_path):
    monkeypatch.setattr("sys.argv", ["measure", *words, "--data", str(tmp_path / "none")])
    with pytest.raises(SystemExit) as end:
        command.main()
    assert end.value.code == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    [line] = printed.err.splitlines()
    assert "none' is not a folder of data sets; pass --data or set METERVEIL_DATA" in line
