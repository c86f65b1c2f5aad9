"""How long `meterveil plan` takes for a month of minutes and about 60 batteries, in seconds of one core.

The time of the processor counts, so that other work on the machine does not; reading the meter and drawing the page
are not part of it.
"""

from __future__ import annotations

import time

from rich.console import Console

from _record import record
from meterveil.bench.battery_plan import plan
from meterveil.data.load import load
from meterveil.data.simulation import Setup
from meterveil.data.synthetic import decoy_library


def main() -> None:
    home = load("synthetic", days=44)
    began = time.process_time()
    planned = plan(home, Setup(decoy_library()))
    took = time.process_time() - began
    words = f"{len(planned.days)} days, {len(planned.table)} batteries"
    record("plan.month_of_60_batteries", took, "s of one core", "<= 20")
    Console().print(f"{words}: {took:.1f} s of one core (target: 20)")


if __name__ == "__main__":
    main()
