"""Images as pixels: from a file, its bytes, a Pillow image or an array, to whole numbers from 0 to 255.

Shapes: H height, W width, C channels, which come last: gray has one, color three, color with transparency four.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import DataError, HeedfulError, MissingDependencyError

Pixels = NDArray[np.uint8]  # (H, W, C)

FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF")  # those that Pillow decodes without another program's help
LARGEST_FILE = 256 << 20  # bytes
MOST_PIXELS = 64_000_000  # a small file can claim to be a huge image
RESAMPLING = ("nearest", "lanczos", "bilinear", "bicubic", "box", "hamming")  # by Pillow's numbers


def pixels_of(source: object, n_channels: int) -> Pixels:
    """Return an image as (H, W, n_channels).

    Args:
        source: a path, the bytes of a file, a Pillow image, or an array or nested lists: (H, W) or (H, W, C), integers
            from 0 to 255, or fractions from 0 to 1, which are rounded to 256 levels.
        n_channels: color is converted to gray and gray to color as needed; transparent pixels become white.

    Raises:
        DataError: the image cannot be read or has the wrong form.
    """
    if isinstance(source, str | os.PathLike):
        try:
            return _with_channels(_of_bytes(_content(Path(source))), n_channels)
        except DataError as error:
            raise DataError(f"{os.fspath(source)}: {error}") from None
    # Whoever has a Pillow image has imported it; another thread may just be doing so.
    pillow_image = getattr(sys.modules.get("PIL.Image"), "Image", None)
    if isinstance(source, bytes):
        pixels = _of_bytes(source)
    elif pillow_image is not None and isinstance(source, pillow_image):
        pixels = _of_pillow(source)
    elif isinstance(source, np.ndarray | list | tuple):
        pixels = _of_array(source)
    else:
        raise DataError(
            f"an image is a path, the bytes of a file, a Pillow image, an array or nested lists, "
            f"not {type(source).__name__}"
        )
    return _with_channels(pixels, n_channels)


def resized(pixels: Pixels, height: int, width: int, resample: str) -> Pixels:
    """Resize each channel separately, exactly as Pillow does."""
    if pixels.shape[:2] == (height, width):
        return pixels
    _check_size(height, width)
    pillow = _pillow()
    channels = (pillow.Image.fromarray(np.ascontiguousarray(channel)) for channel in np.moveaxis(pixels, -1, 0))
    number = RESAMPLING.index(resample)
    return np.stack([np.asarray(channel.resize((width, height), number)) for channel in channels], axis=-1)


def _content(path: Path) -> bytes:
    try:
        if not path.is_file():
            raise DataError("it is a folder, not an image" if path.is_dir() else "there is no such file")
        with path.open("rb") as file:
            return file.read(LARGEST_FILE + 1)
    except OSError as error:
        raise DataError(f"it cannot be read: {error.strerror}") from None


def _of_bytes(content: bytes) -> Pixels:
    if len(content) > LARGEST_FILE:
        raise DataError(f"a file of more than {LARGEST_FILE >> 20} MiB is not read as an image")
    with _decoding() as pillow, pillow.Image.open(BytesIO(content), formats=FORMATS) as image:
        return _of_pillow(image)


def _of_pillow(image: Any) -> Pixels:
    width, height = image.size
    _check_size(height, width)  # before anything is decoded
    if getattr(image, "is_animated", False) and image.format != "MPO":  # a photo with others of its own beside it
        raise DataError(f"it contains {image.n_frames} images; save the one you want as a file of its own")
    with _decoding() as pillow:
        upright = pillow.ImageOps.exif_transpose(image)  # cameras only note which side is up
        if upright.mode.startswith("I;16"):
            return (np.asarray(upright)[..., None] >> 8).astype(np.uint8)
        if upright.mode in ("I", "F"):
            raise DataError("its pixels are 32-bit numbers, and the value of white is unknown; save it with 8 bits")
        gray = upright.mode in ("1", "L")
        mode = "RGBA" if upright.has_transparency_data else "L" if gray else "RGB"
        return np.atleast_3d(np.asarray(upright.convert(mode)))


def _of_array(source: Any) -> Pixels:
    try:
        array = np.asarray(source)
    except (ValueError, OverflowError):
        raise DataError("the rows of an image have one length, and their pixels one number of channels") from None
    if array.ndim not in (2, 3) or array.size == 0:
        raise DataError(f"an image is (height, width) or (height, width, channels), not {array.shape}")
    _check_size(*array.shape[:2])
    if array.dtype.kind not in "iuf":
        raise DataError(f"pixels are whole numbers from 0 to 255 or fractions from 0 to 1, not {array.dtype}")
    most = 1 if array.dtype.kind == "f" else 255
    lowest, highest = array.min(), array.max()
    if not (lowest >= 0 and highest <= most):
        kind = "fractions from 0 to 1" if most == 1 else "whole numbers from 0 to 255"
        hint = "; divide by 255" if most == 1 and lowest >= 0 and 1 < highest <= 255 else ""
        raise DataError(f"pixels of {array.dtype} are {kind}, but here they go from {lowest} to {highest}{hint}")
    levels = np.rint(array * 255.0) if most == 1 else array
    return np.atleast_3d(levels.astype(np.uint8))


def _with_channels(pixels: Pixels, n: int) -> Pixels:
    n_channels = pixels.shape[2]
    if n_channels == n:
        return pixels
    if n_channels == 4 and n in (1, 3):  # over white
        color, alpha = pixels[..., :3].astype(np.uint16), pixels[..., 3:].astype(np.uint16)
        return _with_channels(((color * alpha + 255 * (255 - alpha) + 127) // 255).astype(np.uint8), n)
    if (n_channels, n) == (1, 3):
        return pixels.repeat(3, axis=2)
    if (n_channels, n) == (3, 1):  # luma of ITU-R 601 in parts of 65,536, rounded as Pillow does
        luma = (pixels @ np.array([19595, 38470, 7471], np.uint32) + 32768) >> 16
        return luma[..., None].astype(np.uint8)
    first = pixels.shape[0]
    hint = "; its channels seem to come first: give np.moveaxis(image, 0, -1)" if first in (1, 3, 4, n) else ""
    raise DataError(f"the model reads {n} channels, and an image of shape {pixels.shape} has {n_channels}{hint}")


def _check_size(height: int, width: int) -> None:
    if height * width > MOST_PIXELS:
        raise _too_many(f"{height:,} x {width:,}")


def _too_many(size: str) -> DataError:
    return DataError(f"an image of {size} pixels is too large; at most {MOST_PIXELS:,} are read")


def _pillow() -> Any:
    try:
        import PIL.Image
        import PIL.ImageOps
    except ImportError as missing:
        raise MissingDependencyError(
            "reading and resizing images needs Pillow; install it: pip install 'heedful[images]'"
        ) from missing
    return PIL


@contextmanager
def _decoding() -> Iterator[Any]:
    """Yield Pillow; convert errors of its decoders to a DataError."""
    pillow = _pillow()
    try:
        yield pillow
    except HeedfulError:
        raise
    except pillow.UnidentifiedImageError:
        raise DataError(f"it is not an image in a supported format: {', '.join(FORMATS)}") from None
    except (pillow.Image.DecompressionBombError, pillow.Image.DecompressionBombWarning):
        raise _too_many("so many") from None
    except Exception as error:  # each decoder complains in its own way, of OSError, SyntaxError, struct.error, …
        raise DataError(f"it is broken: {error or type(error).__name__}") from None
