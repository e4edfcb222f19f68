"""The errors and warnings of a training run."""

from ..errors import HeedfulError


class FolderError(HeedfulError, OSError):
    """A run folder that cannot be used: another run has locked it, or it cannot be written."""


class CheckpointError(HeedfulError, RuntimeError):
    """A checkpoint that could not be written, or that is damaged."""


class CheckpointWarning(UserWarning):
    """A damaged checkpoint was skipped, and an older one used."""


class ResumeError(HeedfulError, RuntimeError):
    """A run that cannot be resumed, because its data or its settings have changed."""


class ResumeWarning(UserWarning):
    """A run was resumed although its data or its settings have changed."""


class NonFiniteError(HeedfulError, ArithmeticError):
    """A loss, a gradient or a score is NaN or infinite; the message names the input."""


class LossSpikeError(HeedfulError, ArithmeticError):
    """A loss far above the earlier ones, where `training.loss_spikes` is "stop"; the message names the input."""


class Interrupted(HeedfulError):  # noqa: N818  (no mistake was made)
    """A signal ended the run after it was saved. `code` is the exit code for the process."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


class EngineError(HeedfulError, RuntimeError):
    """The selected engine cannot run the steps."""

    def __init__(self, what: str, error: BaseException) -> None:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        super().__init__(f"{what}: {reason}; take another engine (--engine eager)")


class EngineWarning(UserWarning):
    """The run continues with another engine than the selected one."""
