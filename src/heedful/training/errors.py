"""What can stop a run, said in words."""

from ..errors import HeedfulError


class FolderError(HeedfulError, OSError):
    """A run folder that cannot be used: another run holds it, or it cannot be written."""


class CheckpointError(HeedfulError, RuntimeError):
    """A checkpoint that could not be written, or that is not what was written."""


class CheckpointWarning(UserWarning):
    """A damaged checkpoint was left aside for an older one."""


class ResumeError(HeedfulError, RuntimeError):
    """A run that cannot simply go on: its data or its settings have changed."""


class ResumeWarning(UserWarning):
    """A run goes on although its data or its settings have changed."""


class NonFiniteError(HeedfulError, ArithmeticError):
    """A loss, a gradient or a score that is no number, and the input behind it."""


class Interrupted(HeedfulError):  # noqa: N818  (no mistake was made)
    """A signal ended the run after it was saved; `code` is what the process should exit with."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


class EngineError(HeedfulError, RuntimeError):
    """Steps cannot be run by the engine that was asked for."""

    def __init__(self, what: str, error: BaseException) -> None:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        super().__init__(f"{what}: {reason}; take another engine (--engine eager)")
