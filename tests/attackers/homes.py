"""The paper's days of the real homes."""

from datetime import timedelta

from meterveil.data.protocols import REDD_HOUSE2, UKDALE_HOUSE1
from meterveil.data.releases import read_redd, read_ukdale


def real_days(folder, dataset):
    """Training days as one household, the held-out days and the targets of a protocol."""
    if dataset == "redd":
        house, protocol = read_redd(folder / "redd", 2), REDD_HOUSE2
        held_out = protocol.test
    else:
        house, protocol = read_ukdale(folder / "ukdale", 1), UKDALE_HOUSE1
        held_out = protocol.held_out(house.select(["fridge", "kettle", "microwave"]))[:14]
    targets = protocol.present_targets(house, protocol.test[0])
    training = house.between(protocol.training[0], protocol.training[-1] + timedelta(days=1))
    return training.select(targets), [house.select(targets).day(day) for day in held_out], targets
