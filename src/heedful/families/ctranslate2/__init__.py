"""CTranslate2's models, in and out: an engine in C++ that many translators are deployed with.

`binary` reads its file without it; `variables`, `parts`, `places` and `inward` make a module of what was read, and
`folder` a model. `survey` says which of our parts it has a place for, `outward` fills its specification with them.
"""

from .binary import Binary, CTranslate2Error, read_binary
from .folder import Model, Vocabularies, from_ctranslate2
from .outward import spec_of
from .survey import ExportError, library
from .written import write_folder

__all__ = [
    "Binary",
    "CTranslate2Error",
    "ExportError",
    "Model",
    "Vocabularies",
    "from_ctranslate2",
    "library",
    "read_binary",
    "spec_of",
    "write_folder",
]
