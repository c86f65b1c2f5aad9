"""Page of a household: a day with every appliance, and how much of each channel is known."""

from __future__ import annotations

from datetime import date
from pathlib import Path

from meterveil.data import outputs
from meterveil.data.coverage import (
    LITTLE_KNOWN,
    Channel,
    channels,
    general_notes,
    longest_gaps,
    silent_channels,
)
from meterveil.data.household import Household
from meterveil.plots.household import coverage_figure, household_figure
from meterveil.plots.html import Section, page
from meterveil.plots.look import sentences


def write_household(household: Household, day: date | None, folder: Path) -> Path:
    """Write the page; without a day, as in a record that holds no whole one, it shows the whole record."""
    part = household.day(day) if day else household
    first, last = part.minutes[0], part.minutes[-1]
    words = "".join(letter if letter.isalnum() else "-" for letter in household.name.lower())
    name = f"{words}-{first.date()}.html"
    outputs.folder(folder, [name])
    silent = ", ".join(silent_channels(part)).replace("_", " ")
    missing = f"No reading: {silent}." if silent else ""
    heading = f"{first:%A %d %B %Y}" if day else f"{first:%d %B %Y %H:%M} to {last:%d %B %Y %H:%M}"
    sections = [
        Section(heading, missing, (), household_figure(part, heading)),
        Section("Known minutes of every day", "", channel_rows(household), coverage_figure(household)),
    ]
    intro = sentences([f"Times are local, {household.timezone}", *general_notes(household)])
    return outputs.write_text(folder / name, page(household.name, sections, intro))


def channel_rows(household: Household) -> list[list[str]]:
    """Describe every channel, the head of the table first."""
    rows = [["channel", "known", "unit", "energy/day", "notes"]]
    for channel in channels(household):
        notes = "; ".join(channel.notes)
        rows.append([channel.name, f"{channel.coverage:.1%}", channel.unit, _energy(channel), notes])
    return rows


def gap_rows(household: Household) -> list[list[str]]:
    """List the longest gaps, the head of the table first."""
    rows = [["channels", "from", "minutes"]]
    total = len(household.appliances_w) + 1
    for gap in longest_gaps(household):
        first, others = gap.channels[0], len(gap.channels) - 1
        who = "all" if others + 1 == total > 1 else f"{first} and {others} more" if others else first
        rows.append([who, f"{gap.start:%Y-%m-%d %H:%M}", f"{gap.minutes:,}"])
    return rows


def _energy(channel: Channel) -> str:
    """Write the energy per day, or the energy of the known days where these are few."""
    unit = f"k{channel.unit}h"
    if channel.known_days == 0:
        return ""
    if channel.coverage >= LITTLE_KNOWN:
        return f"{channel.energy_kwh_per_day:.2f}\u00a0{unit}"
    energy_kwh = channel.energy_kwh_per_day * channel.known_days
    return f"{energy_kwh:.2f}\u00a0{unit} in {channel.known_days:.1f}\u00a0days".replace(" ", "\u00a0")
