"""One training loop for every task. A run can be killed at any moment and resumed as if it had not been."""

from .checkpoint import RunFolder as RunFolder
from .config import TrainingConfig as TrainingConfig
from .errors import CheckpointError as CheckpointError
from .errors import CheckpointWarning as CheckpointWarning
from .errors import FolderError as FolderError
from .errors import Interrupted as Interrupted
from .errors import NonFiniteError as NonFiniteError
from .errors import ResumeError as ResumeError
from .errors import ResumeWarning as ResumeWarning
from .loss import Loss as Loss
from .loss import cross_entropy as cross_entropy
from .metrics import Event as Event
from .metrics import Finished as Finished
from .metrics import Observer as Observer
from .metrics import Outcome as Outcome
from .metrics import Planned as Planned
from .metrics import Saved as Saved
from .metrics import Trained as Trained
from .metrics import Validated as Validated
from .objective import Batches as Batches
from .objective import Monitor as Monitor
from .objective import Objective as Objective
from .optimizers import Ema as Ema
from .optimizers import mean_of as mean_of
from .trainer import Trainer as Trainer
from .trainer import fit as fit
