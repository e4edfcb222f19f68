"""What compiles nothing does not import torch's compiler, which takes seconds; torch's own optimisers and operators do.

On a GPU, test_engines_on_gpu.py says the same of a whole run.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

OPTIMISERS = """
import torch
from heedful.training.optimizers import FusedAdamW
from heedful.training.optimizers import Muon
matrix = torch.nn.Parameter(torch.randn(4, 4))
for made in (Muon([{"params": [matrix]}], torch.zeros(())), FusedAdamW([matrix], lr=torch.zeros(()))):
    assert made.param_groups[0]["params"] == [matrix]
"""
CONFIGS = """
from heedful.tasks.language_model.data import LanguageModelConfig
from heedful.tasks.masked.task import MaskedConfig
from heedful.tasks.text_to_text.data import TextToTextConfig
from heedful.tasks.translation.task import TranslationConfig
for config in (LanguageModelConfig, MaskedConfig, TextToTextConfig, TranslationConfig):
    config.from_dict({"source": "en", "target": "ko"} if config is TranslationConfig else {})
"""
TOLD = """
import sys
print("torch._dynamo" in sys.modules)
"""


@pytest.mark.parametrize("work", [OPTIMISERS, CONFIGS], ids=["the optimisers of a GPU", "settings"])
def test_the_compiler_is_not_imported(work: str) -> None:
    ended = subprocess.run([sys.executable, "-c", work + TOLD], capture_output=True, text=True, check=False)
    assert ended.stdout.strip() == "False", ended.stdout + ended.stderr
