"""Reads and writes models of CTranslate2, an inference engine in C++.

`model_bin` reads its file without CTranslate2, `loader` builds a module from the variables, `spec` fills CTranslate2's
specification with a module's weights, and `folder` reads and writes a whole model.
"""

from .folder import Model as Model
from .folder import Vocabularies as Vocabularies
from .folder import from_ctranslate2 as from_ctranslate2
from .folder import write_folder as write_folder
from .model_bin import Binary as Binary
from .model_bin import CTranslate2Error as CTranslate2Error
from .model_bin import read_binary as read_binary
from .spec import ExportError as ExportError
from .spec import library as library
from .spec import spec_of as spec_of
