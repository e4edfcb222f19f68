"""Forecasting: the steps that follow a series."""

from .forecaster import ForecastSettings, SeriesForecaster

__all__ = ["ForecastSettings", "SeriesForecaster"]
