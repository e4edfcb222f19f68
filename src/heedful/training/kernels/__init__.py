"""What torch does in several readings of the memory, in one or two: Triton kernels for a GPU.

Each stands for something that is written out in torch beside it, and is tested against that.
"""

from .availability import available

__all__ = ["available"]
