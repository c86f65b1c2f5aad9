"""Every figure once, each a function from data to a plotly figure; reports and dashboards draw with these."""

from meterveil.plots.household import coverage_figure, household_figure
from meterveil.plots.html import Section, page
from meterveil.plots.library import library_figure
from meterveil.plots.saving import check_picture, save
from meterveil.plots.simulation import comparison_figure, day_figure, days_figure, hero_figure

__all__ = [
    "Section",
    "check_picture",
    "comparison_figure",
    "coverage_figure",
    "day_figure",
    "days_figure",
    "hero_figure",
    "household_figure",
    "library_figure",
    "page",
    "save",
]
