"""Sets of images: what each format holds, what is brought to one shape, and clear words for what cannot be read."""

from __future__ import annotations

import gzip
import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from heedful.data.image_sets import (
    TRAIN,
    UNUSED,
    VALID,
    ImageSource,
    ImageStore,
    common_shape,
    image_sources,
    resized_images,
    write_images,
)
from heedful.data.report import ImageReport
from heedful.errors import DataError

TRAINING, TESTING = "train-images-idx3-ubyte", "t10k-images-idx3-ubyte"


def drawn(*shape: int, seed: int = 0) -> NDArray[np.uint8]:
    return np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)


def idx(array: NDArray[Any], code: int = 8) -> bytes:
    """As the format's own page says it."""
    return bytes([0, 0, code, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


def mnist(folder: Path, name: str, images: NDArray[Any], labels: NDArray[Any], *, packed: bool = False) -> Path:
    """Images and labels beside each other."""
    folder.mkdir(exist_ok=True)
    path = folder / f"{name}{'.gz' if packed else ''}"
    for place, array in ((path, images), (path.with_name(path.name.replace("images-idx3", "labels-idx1")), labels)):
        place.write_bytes(gzip.compress(idx(array)) if packed else idx(array))
    return path


def image_source(path: Path | str, **message: Any) -> ImageSource:
    (source,) = image_sources([str(path)], **message)
    return source


def contents(source: ImageSource) -> list[tuple[Any, str]]:
    return [(np.asarray(loaded.image).tolist(), loaded.label) for loaded in source.images()]


def pictures(folder: Path, **classes: list[NDArray[np.uint8]]) -> Path:
    for name, images in classes.items():
        (folder / name).mkdir(parents=True)
        for number, pixels in enumerate(images):
            Image.fromarray(pixels).save(folder / name / f"{number}.png")
    return folder


# idx


@pytest.mark.parametrize("packed", [False, True])
def test_idx(tmp_path: Path, packed: bool) -> None:
    images, labels = drawn(5, 3, 4), np.array([3, 0, 3, 9, 1], np.uint8)
    path = mnist(tmp_path, TRAINING, images, labels, packed=packed)
    source = image_source(path)
    assert contents(source) == [(image.tolist(), str(label)) for image, label in zip(images, labels, strict=True)]
    assert contents(source) == contents(source)  # as often as one asks
    assert [loaded.place for loaded in source.images()][:2] == [f"{path}:1", f"{path}:2"]
    assert {file.name.removesuffix(".gz") for file in source.files} == {TRAINING, "train-labels-idx1-ubyte"}


def test_idx_with_dots_and_colour(tmp_path: Path) -> None:
    images = drawn(2, 3, 4, 3)
    (tmp_path / "train-images.idx4-ubyte").write_bytes(idx(images))
    (tmp_path / "train-labels.idx1-ubyte").write_bytes(idx(np.array([1, 300], ">i4"), 12))
    assert contents(image_source(tmp_path)) == [(images[0].tolist(), "1"), (images[1].tolist(), "300")]


def test_a_folder_of_four_files_has_two_parts(tmp_path: Path) -> None:
    mnist(tmp_path, TRAINING, drawn(4, 2, 2), np.arange(4, dtype=np.uint8), packed=True)
    mnist(tmp_path, TESTING, drawn(3, 2, 2), np.arange(3, dtype=np.uint8))
    assert [len(contents(image_source(tmp_path, part=part))) for part in ("train", "test")] == [4, 3]


def test_a_folder_with_one_part_is_that_part(tmp_path: Path) -> None:
    mnist(tmp_path, TESTING, drawn(3, 2, 2), np.arange(3, dtype=np.uint8))
    assert [len(contents(image_source(tmp_path, part=part))) for part in ("train", "test")] == [3, 3]


IMAGES, LABELS = idx(drawn(2, 3, 3)), idx(np.zeros(2, np.uint8))


@pytest.mark.parametrize(
    ("images", "labels", "message"),
    [
        (IMAGES[:-1], LABELS, "ends too early"),
        (IMAGES + b"x", LABELS, "has more bytes than"),
        (IMAGES, LABELS[:-1], "ends too early"),
        (IMAGES, idx(np.zeros(3, np.uint8)), "holds 2 images, but .* 3 labels"),
        (idx(drawn(2, 9)), LABELS, "images are bytes in 3 or 4 dimensions, not uint8 in 2"),
        (idx(np.zeros((2, 3, 3), ">f4"), 13), LABELS, "images are bytes"),
        (IMAGES, idx(np.zeros((2, 1), np.uint8)), "labels are whole numbers in 1 dimension"),
        (IMAGES, b"\x00\x01\x08\x01" + LABELS[4:], "is not an idx file: it begins with 00 01 08 01"),
        (IMAGES, None, "the labels are missing; train-labels-idx1-ubyte or"),
        (bytes([0, 0, 8, 3]) + struct.pack(">3I", 2, 1 << 31, 1 << 31), LABELS, "are not read"),
        (bytes([0, 0, 8, 3]) + struct.pack(">3I", 2, 8000, 8000), LABELS, "ends too early"),
        (IMAGES, bytes([0, 0, 8, 1]) + struct.pack(">I", 0xFFFFFFFF), "declares 4,294,967,295 labels"),
        (gzip.compress(IMAGES, mtime=0)[:-12], LABELS, "ends too early"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_idx_files_that_are_not_whole(tmp_path: Path, images: bytes, labels: bytes | None, message: str) -> None:
    (tmp_path / TRAINING).write_bytes(images)
    if labels is not None:
        (tmp_path / "train-labels-idx1-ubyte").write_bytes(labels)
    with pytest.raises(DataError, match=message):
        list(image_source(tmp_path / TRAINING).images())


def test_labels_given_for_images(tmp_path: Path) -> None:
    mnist(tmp_path, TRAINING, drawn(1, 2, 2), np.zeros(1, np.uint8))
    with pytest.raises(DataError, match="holds labels, not images"):
        image_source(tmp_path / "train-labels-idx1-ubyte")


def test_several_sets_in_a_folder(tmp_path: Path) -> None:
    for name in ("letters-train-images-idx3-ubyte", "digits-train-images-idx3-ubyte"):
        mnist(tmp_path, name, drawn(1, 2, 2), np.zeros(1, np.uint8))
    with pytest.raises(DataError, match=r"several sets of images: digits-train.*, letters-train"):
        image_source(tmp_path)


# npz


@pytest.mark.parametrize(
    "names", [("x", "y"), ("images", "labels"), ("x_train", "y_train"), ("train_images", "train_labels")]
)
@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_npz(tmp_path: Path, names: tuple[str, str], save: Any) -> None:
    images = drawn(3, 2, 5, 3)
    save(tmp_path / "set.npz", **dict(zip(names, (images, np.array([2, 0, 11])), strict=True)))
    loaded = contents(image_source(tmp_path / "set.npz"))
    assert loaded == [(images[0].tolist(), "2"), (images[1].tolist(), "0"), (images[2].tolist(), "11")]


def test_npz_has_two_parts_and_classes_with_names(tmp_path: Path) -> None:
    path = tmp_path / "set.npz"
    cats = np.array(["cat", "고양이"])
    np.savez(path, x_train=drawn(2, 2, 2), y_train=cats, x_test=drawn(1, 2, 2), y_test=np.array([b"dog"]))
    assert [label for _, label in contents(image_source(path))] == ["cat", "고양이"]
    assert [label for _, label in contents(image_source(path, part="test"))] == ["dog"]


def test_a_column_of_classes(tmp_path: Path) -> None:
    np.savez(tmp_path / "set.npz", x=drawn(2, 2, 2), y=np.array([[1], [0]]))
    assert [label for _, label in contents(image_source(tmp_path / "set.npz"))] == ["1", "0"]


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"a": drawn(2, 3), "b": np.zeros(2)}, "the arrays are called a, b"),
        ({"x": drawn(2, 3), "y": np.zeros(2, int)}, r"x has the shape \(2, 3\)"),
        ({"x": drawn(2, 3, 3), "y": np.zeros(3, int)}, "x holds 2 images, but y 3 classes"),
        ({"x": drawn(2, 3, 3), "y": np.zeros(2)}, "y is float64"),
        ({"x": drawn(2, 3, 3), "y": np.eye(2, dtype=int)}, "y is int64 of the shape"),
        ({"x": np.asfortranarray(drawn(2, 3, 3)), "y": np.zeros(2, int)}, "column by column"),
        ({"x": np.array([None, {}]), "y": np.zeros(2, int)}, "Python objects, which are not read"),
    ],
)
def test_npz_files_that_hold_something_else(tmp_path: Path, arrays: dict[str, NDArray[Any]], message: str) -> None:
    np.savez(tmp_path / "set.npz", **arrays)  # type: ignore[arg-type]
    with pytest.raises(DataError, match=message):
        list(image_source(tmp_path / "set.npz").images())


def test_npz_files_that_are_broken(tmp_path: Path) -> None:
    whole = tmp_path / "whole.npz"
    np.savez_compressed(whole, x=drawn(2, 30, 30), y=np.zeros(2, int))
    for number, content in enumerate([b"nothing", whole.read_bytes()[:-30], _flipped(whole.read_bytes())]):
        path = tmp_path / f"{number}.npz"
        path.write_bytes(content)
        with pytest.raises(DataError, match="is not a complete npz file"):
            list(image_source(path).images())


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_npz_files_damaged_anywhere(tmp_path: Path, save: Any) -> None:
    path = tmp_path / "set.npz"
    save(path, x=drawn(2, 3, 3), y=np.array(["a", "고"]))
    whole, random = path.read_bytes(), np.random.default_rng(0)
    refused = 0
    for place in range(len(whole)):
        for value in (0xFF, *random.integers(0, 256, 1).tolist()):
            path.write_bytes(whole[:place] + bytes([value]) + whole[place + 1 :])
            try:
                list(image_source(path).images())
            except DataError:
                refused += 1
    assert refused > len(whole)


def test_npz_with_a_name_that_is_no_text(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "set.npz", "w") as archive:
        archive.writestr("이름.npy", b"")
    content = (tmp_path / "set.npz").read_bytes().replace("이".encode(), b"\xff\xff\xff")
    (tmp_path / "set.npz").write_bytes(content)
    with pytest.raises(DataError, match=r"set\.npz is not a complete npz file: 'utf-8' codec"):
        image_source(tmp_path / "set.npz")


def test_an_array_that_claims_more_than_there_is(tmp_path: Path) -> None:
    path = tmp_path / "set.npz"
    np.savez(path, y=np.zeros(10**6, np.int8))
    header = b"\x93NUMPY\x01\x00" + struct.pack("<H", 118)
    claim = b"{'descr': '|u1', 'fortran_order': False, 'shape': (1000000, 60000, 1000), }".ljust(117) + b"\n"
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("x.npy", header + claim + b"few")
    with pytest.raises(DataError, match="but has 3 bytes"):
        list(image_source(path).images())


def _flipped(content: bytes) -> bytes:
    """One bit of the compressed pixels."""
    return content[:500] + bytes([content[500] ^ 1]) + content[501:]


# Folders and tables


def test_a_folder_for_each_class(tmp_path: Path) -> None:
    pictures(tmp_path, cat=[drawn(2, 2), drawn(3, 3, 3)], dog=[drawn(2, 2)])
    (tmp_path / "dog" / "deeper").mkdir()
    Image.fromarray(drawn(2, 2)).save(tmp_path / "dog" / "deeper" / "z.JPEG")
    (tmp_path / "dog" / "notes.txt").write_text("no image")
    (tmp_path / ".hidden").mkdir()
    source = image_source(tmp_path)
    assert [(loaded.label, Path(loaded.place).name) for loaded in source.images()] == [
        ("cat", "0.png"),
        ("cat", "1.png"),
        ("dog", "0.png"),
        ("dog", "z.JPEG"),
    ]
    assert len(source.files) == 4
    assert source.passed_over == (str(tmp_path / "dog" / "notes.txt"),)


def test_a_link_to_nothing_is_an_image_that_cannot_be_read(tmp_path: Path) -> None:
    pictures(tmp_path, cat=[drawn(2, 2)])
    for name in ("a.png", "notes"):
        (tmp_path / "cat" / name).symlink_to(tmp_path / "nowhere")
    source = image_source(tmp_path)
    assert [Path(loaded.place).name for loaded in source.images()] == ["0.png", "a.png"]
    assert source.files == (tmp_path / "cat" / "0.png",)
    assert source.passed_over == (str(tmp_path / "cat" / "notes"),)


@pytest.mark.parametrize("header", ["path,label\n", "id,Label,Path\n", ""])
def test_a_table_of_paths(tmp_path: Path, header: str) -> None:
    pictures(tmp_path, some=[drawn(2, 2), drawn(2, 2)])
    rows = [("some/0.png", "a, b"), ("some/1.png", "c")]
    forms = {"id,Label,Path\n": '7,"{1}",{0}\n'}
    text = header + "".join(forms.get(header, '{0},"{1}"\n').format(*row) for row in rows)
    (tmp_path / "list.csv").write_text(text)
    source = image_source(tmp_path / "list.csv")
    assert [(loaded.image, loaded.label) for loaded in source.images()] == [
        (tmp_path / path, label) for path, label in rows
    ]
    assert source.files == (tmp_path / "list.csv", tmp_path / "some/0.png", tmp_path / "some/1.png")


def test_columns_can_be_named(tmp_path: Path) -> None:
    pictures(tmp_path, some=[drawn(2, 2)])
    (tmp_path / "list.tsv").write_text("where\tbreed\nsome/0.png\tpug\n")
    (loaded,) = image_source(tmp_path / "list.tsv", columns=("where", "breed")).images()
    assert loaded.label == "pug"
    with pytest.raises(DataError, match="were called where, race; there are: where, breed"):
        image_source(tmp_path / "list.tsv", columns=("where", "race"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("where,breed\nsome/0.png,pug\n", "the columns are where, breed; one called path"),
        ("path,label\nsome/9.png,pug\n", r"list.csv:2: there is no file .*9.png"),
        ("path,label\nsome/0.png\n", "list.csv:2: a path and a class are needed"),
        ("path,label\nsome/0.png,\n", "list.csv:2: a path and a class are needed"),
        ("path,label\n", "does not list any image"),
        ("", "does not list any image"),
        ('path,label\n"some/0.png,pug\n', "the row cannot be read"),
    ],
)
def test_tables_that_cannot_be_used(tmp_path: Path, text: str, message: str) -> None:
    pictures(tmp_path, some=[drawn(2, 2)])
    (tmp_path / "list.csv").write_text(text)
    with pytest.raises(DataError, match=message):
        image_source(tmp_path / "list.csv")


def test_what_is_no_set(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "loose").mkdir()
    Image.fromarray(drawn(2, 2)).save(tmp_path / "loose" / "a.png")
    pictures(tmp_path / "parts", train=[drawn(2, 2)], val=[drawn(2, 2)])
    (tmp_path / "text.txt").write_text("hello")
    for name, message in (
        ("empty", "there is no image in it; expected are a folder for each class"),
        ("loose", "its images lie in no folder of a class"),
        ("parts", "train, val, which are splits of a data set, not classes"),
        ("text.txt", "is not a set of images; supported are"),
        ("gone", "there is no such file or folder"),
    ):
        with pytest.raises(DataError, match=message):
            image_source(tmp_path / name)
    with pytest.raises(DataError, match="no images were given"):
        image_sources([])


# Brought to one shape


def shape_of(folder: Path, size: int | None = None, n_channels: int | None = None) -> tuple[int, int]:
    return common_shape([image_source(folder)], size, n_channels, 10)


@pytest.mark.parametrize(
    ("images", "expected"),
    [
        ([drawn(6, 6), drawn(6, 6)], (6, 1)),
        ([drawn(6, 4), drawn(6, 4)], (6, 1)),
        ([drawn(6, 6), drawn(5, 6)], (10, 1)),
        ([drawn(12, 12), drawn(12, 12)], (10, 1)),
        ([drawn(6, 6), drawn(6, 6, 3)], (6, 3)),
        ([drawn(6, 6, 1).repeat(3, axis=2)], (6, 1)),  # gray, whatever the file says
        ([drawn(12, 12), drawn(6, 6, 3)], (10, 3)),
    ],
)
def test_the_shape_that_all_get(tmp_path: Path, images: list[NDArray[np.uint8]], expected: tuple[int, int]) -> None:
    folder = pictures(tmp_path / "set", a=images)
    assert shape_of(folder) == expected
    assert shape_of(folder, 7, 3) == (7, 3)
    assert shape_of(folder, 7) == (7, expected[1])
    assert shape_of(folder, None, 3) == (expected[0], 3)


def test_every_image_is_kept_or_counted(tmp_path: Path) -> None:
    folder = pictures(tmp_path / "set", a=[drawn(4, 4), drawn(4, 4, 3), drawn(8, 6)], b=[drawn(4, 4)])
    (folder / "b" / "broken.png").write_bytes((folder / "b" / "0.png").read_bytes()[:50])
    (folder / "b" / "text.jpg").write_text("no image")
    reading = ImageReport()
    loaded = list(resized_images([image_source(folder)], 4, 1, reading))
    assert {pixels.shape for pixels, _, _ in loaded} == {(4, 4, 1)}
    np.testing.assert_array_equal(loaded[0][0][..., 0], drawn(4, 4))
    assert [label for _, label, _ in loaded] == ["a", "a", "a", "b"]
    content = reading.to_dict()
    assert (content["images"], content["kept"], content["classes"]) == (6, 4, {"a": 3, "b": 1})
    assert content["dropped"]["broken or no image"]["count"] == 2
    first, second = content["dropped"]["broken or no image"]["first"]
    assert first.startswith(f"{folder}/b/broken.png (it is broken: ")
    assert second.startswith(f"{folder}/b/text.jpg (it is not an image in a supported format: ")
    assert {name: tally["count"] for name, tally in content["changed"].items()} == {
        "color made gray": 1,
        "resized to 4 x 4": 1,
    }
    assert content["notes"] == ["1 images: color made gray", "1 images: resized to 4 x 4"]


def test_channels_that_no_image_has(tmp_path: Path) -> None:
    np.savez(tmp_path / "set.npz", x=drawn(2, 5, 5, 2), y=np.zeros(2, int))
    reading = ImageReport()
    assert list(resized_images([image_source(tmp_path / "set.npz")], 5, 3, reading)) == []
    (place, _) = reading.dropped["broken or no image"].places
    assert "x[0] (the model reads 3 channels, and an image of shape (5, 5, 2) has 2)" in place


# The store


def stored(folder: Path, n: int = 3) -> NDArray[np.uint8]:
    images = drawn(n, 2, 3, 1)
    with write_images(folder, (2, 3, 1)) as writer:
        for number, image in enumerate(images):
            writer.add(image, f"place\n{number}")
        writer.labels, writer.parts = [5, 6, 7][:n], [TRAIN, VALID, UNUSED][:n]
    return images


def test_what_is_stored_comes_back(tmp_path: Path) -> None:
    images = stored(tmp_path / "store")
    store = ImageStore(tmp_path / "store")
    np.testing.assert_array_equal(store.pixels, images)
    assert (len(store), store.labels.tolist(), store.place(1)) == (3, [5, 6, 7], "place\\n1")
    assert (store.part(TRAIN).rows.tolist(), store.part(VALID).rows.tolist()) == ([0], [1])


@pytest.mark.parametrize("name", ["pixels.bin", "labels.bin", "parts.bin", "places.txt", "meta.json"])
def test_a_store_is_whole_or_not_there(tmp_path: Path, name: str) -> None:
    stored(tmp_path)
    content = (tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(content[:-1])
    with pytest.raises(DataError, match="cannot be used"):
        ImageStore(tmp_path)
    (tmp_path / name).unlink()
    with pytest.raises(DataError, match="there are no stored images, or not all of them"):
        ImageStore(tmp_path)


def test_an_error_while_writing_leaves_the_older_store(tmp_path: Path) -> None:
    stored(tmp_path)
    with pytest.raises(ValueError, match="broken"), write_images(tmp_path, (2, 3, 1)):
        raise ValueError("broken")
    assert len(ImageStore(tmp_path)) == 3
