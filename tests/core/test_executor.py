import numpy as np

from meterveil.core import executor
from meterveil.core.battery import Battery, BatteryState
from meterveil.core.decoys import Library

LIBRARY = Library.of([("kettle", [1000.0, 2000.0, 1500.0]), ("toaster", [800.0])], "test")


def run(command, loads_w, soc=0.5, **settings):
    """Carry a command out to its end; return the battery power of each minute."""
    batch = len(command.level_w)
    state = BatteryState(np.full(batch, soc), np.zeros(batch))
    replay, powers_w = executor.issue(executor.nothing_running(LIBRARY, batch), command), []
    while replay.running.any():
        load_w = np.full(batch, loads_w[len(powers_w)])
        state, replay, power_w = executor.tick(Battery(**settings), LIBRARY, state, replay, load_w)
        powers_w.append(power_w)
    return np.array(powers_w).T


def test_one_action_of_each_kind_runs_side_by_side():
    command = executor.replay_signature(LIBRARY, np.array([0, 1, 2, 3, 4]))
    power_w = run(command, [5000.0] * 3)
    assert power_w.tolist() == [
        [0.0, 0.0, 0.0],
        [1000.0, 2000.0, 1500.0],
        [800.0, 0.0, 0.0],
        [-1000.0, -2000.0, -1500.0],
        [-800.0, 0.0, 0.0],
    ]


def test_a_clipped_minute_does_not_end_a_replay():
    command = executor.replay_signature(LIBRARY, np.array([3]))
    assert run(command, [700.0, 0.0, 9000.0]).tolist() == [[-700.0, 0.0, -1500.0]]


def test_an_infeasible_choice_costs_one_idle_minute_whatever_forbids_it():
    charge, discharge = (executor.replay_signature(LIBRARY, np.array([action])) for action in (1, 3))
    assert run(charge, [500.0] * 3, soc=0.9).tolist() == [[0.0]]
    assert run(charge, [500.0] * 3, import_limit_w=400.0).tolist() == [[0.0]]
    assert run(discharge, [0.0, 500.0, 500.0]).tolist() == [[0.0]]


def test_an_exhausted_battery_ends_a_replay_half_way():
    command = executor.replay_signature(LIBRARY, np.array([1]))
    power_w = run(command, [500.0] * 3, budget_kwh=0.03)
    np.testing.assert_allclose(power_w, [[1000.0, 800.0]])


def test_a_lost_meter_reading_ends_a_replay():
    command = executor.replay_signature(LIBRARY, np.array([1]))
    assert run(command, [500.0, np.nan]).tolist() == [[1000.0, 0.0]]


def test_holding_the_meter_charges_below_the_target_and_discharges_above_it():
    command = executor.hold_meter(LIBRARY, np.array([600.0, 600.0]))
    assert run(command, [200.0])[0].tolist() == [400.0]
    assert run(command, [900.0])[0].tolist() == [-300.0]


def test_a_decoy_on_a_held_level_shows_the_appliance_whatever_the_load_does():
    command = executor.hold_meter_with_decoy(LIBRARY, np.array([300.0]), np.array([0]))
    loads_w = np.array([200.0, 900.0, 2500.0])
    np.testing.assert_allclose(loads_w + run(command, loads_w)[0], [1300.0, 2300.0, 1800.0])


def test_a_level_may_be_held_longer_than_any_signature_lasts():
    hold = executor.hold_meter(LIBRARY, np.array([600.0]))
    command = hold._replace(minutes=np.array([30]))
    assert run(command, [200.0] * 30).tolist() == [[400.0] * 30]


def test_power_is_added_for_a_minute():
    assert run(executor.add_power(LIBRARY, np.array([-250.0, 125.0])), [400.0]).tolist() == [[-250.0], [125.0]]


def test_a_running_command_is_not_replaced():
    replay = executor.issue(executor.nothing_running(LIBRARY, 2), executor.replay_signature(LIBRARY, np.array([1, 0])))
    state = BatteryState(np.full(2, 0.5), np.zeros(2))
    load_w = np.full(2, 100.0)
    state, replay, _ = executor.tick(Battery(), LIBRARY, state, replay, load_w)
    replay = executor.issue(replay, executor.replay_signature(LIBRARY, np.array([2, 2])))
    _, _, power_w = executor.tick(Battery(), LIBRARY, state, replay, load_w)
    assert power_w.tolist() == [2000.0, 800.0]
