"""Forecasts of a run's cost and statistical power, before any call is made."""

from __future__ import annotations

from cheesebench.planning.plan import CellForecast, Forecast, Outlook, forecast

__all__ = ["CellForecast", "Forecast", "Outlook", "forecast"]
