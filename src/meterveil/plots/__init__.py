"""Figures, each a function from data to a plotly figure, and the pages that show them."""

from meterveil.plots.html import check_picture, save

__all__ = ["check_picture", "save"]
