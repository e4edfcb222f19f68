"""`heedful predict` of images: every one in a folder, each decoded once, those that cannot be read named."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from small_classifiers import classifier, drawn

from heedful.data.images import pixels_of
from heedful.tasks.images import predictor as module
from shell import heedful


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    folder = tmp_path / "pictures"
    (folder / "b").mkdir(parents=True)
    for seed, name in enumerate(("a.png", "b/c.PNG", "d.png")):
        Image.fromarray(drawn(9, 12, 3, seed=seed)).save(folder / name)
    (folder / "notes.txt").write_text("no image")
    Image.fromarray(drawn(9, 12, 3)).save(folder / ".hidden.png")
    classifier(tmp_path).save(tmp_path / "bundle")
    return folder


@pytest.mark.parametrize("tokens", [1, 4096])
def test_every_image_is_decoded_once(pictures: Path, tokens: int, monkeypatch: pytest.MonkeyPatch) -> None:
    decoded: Counter[str] = Counter()

    def count_decoded(image: Any, n_channels: int) -> Any:
        decoded[image.name] += 1
        return pixels_of(image, n_channels)

    monkeypatch.setattr(module, "pixels_of", count_decoded)
    monkeypatch.setattr(module, "BATCH_TOKENS", tokens)
    done = heedful("predict", pictures.parent / "bundle", pictures)
    assert (done.code, done.err) == (0, "")
    paths = [pictures / name for name in ("a.png", "b/c.PNG", "d.png")]
    best = [next(iter(shares)) for shares in classifier(pictures.parent).predict(list(paths))]
    assert done.out == "".join(f"{path}\t{label}\n" for path, label in zip(paths, best, strict=True))
    assert decoded.total() == 2 * len(paths)  # by the shell, and for comparison
    assert set(decoded.values()) == {2}


def test_several_images_and_folders_are_answered_in_order(pictures: Path) -> None:
    done = heedful("predict", pictures.parent / "bundle", pictures / "d.png", pictures / "b", pictures / "a.png")
    assert (done.code, done.err) == (0, "")
    paths = [pictures / name for name in ("d.png", "b/c.PNG", "a.png")]
    assert [line.split("\t")[0] for line in done.out.splitlines()] == list(map(str, paths))


@pytest.mark.parametrize("tokens", [1, 4096])
def test_the_others_are_answered(pictures: Path, tokens: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BATCH_TOKENS", tokens)
    (pictures / "b" / "broken.jpg").write_text("no image")
    (pictures / "lost.png").symlink_to(pictures / "nowhere.png")
    done = heedful("predict", pictures.parent / "bundle", pictures)
    assert done.code == 1
    answers = dict(line.split("\t") for line in done.out.splitlines())
    assert [path for path, label in answers.items() if label] == [
        str(pictures / name) for name in ("a.png", "b/c.PNG", "d.png")
    ]
    assert len(answers) == 5  # the others have a line too, without a class
    assert f"{pictures}/b/broken.jpg: it is not an image" in done.err
    assert f"{pictures}/lost.png: there is no such file" in done.err
    assert "2 of 5 images could not be read" in done.err
