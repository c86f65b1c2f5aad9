"""Figures, each a function from data to a plotly figure, and the pages that show them."""

from meterveil.plots.saving import check_picture, save

__all__ = ["check_picture", "save"]
