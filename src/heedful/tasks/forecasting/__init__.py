"""Forecasting: the steps that follow a series."""

from .data import ForecastingConfig, SeriesConfig
from .predictor import ForecastSettings, SeriesForecaster

__all__ = ["ForecastSettings", "ForecastingConfig", "SeriesConfig", "SeriesForecaster"]
