"""All targets of fuzzing by name."""

from __future__ import annotations

from checking import Target
from data_targets import TARGETS as DATA_TARGETS
from model_targets import TARGETS as MODEL_TARGETS
from serving_targets import TARGETS as SERVING_TARGETS

TARGETS: list[Target] = [*DATA_TARGETS, *MODEL_TARGETS, *SERVING_TARGETS]
