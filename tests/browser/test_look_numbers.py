"""The way through a layer, in numbers: every figure on the page is computed here once more, from the document alone."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

import numpy as np
from browsing import Opens, expect, state, view
from numpy.typing import NDArray
from tiny_looks import Document, values, weights

ATTENTION, HEAD = "decoder.self.1", 2
CELLS = """(bodies) => bodies.map((body) =>
  [...body.rows].map((row) => [...row.querySelectorAll('td')].map((td) => td.textContent)))"""


def written(value: float) -> str:
    """As the page writes a number."""
    if value == -np.inf:
        return "−∞"
    return "<0.001" if 0 < value < 0.0005 else f"{value:.3f}".replace("-0.000", "0.000").replace("-", "−")


def plain(value: float) -> str:
    """As the page writes a number that is no share."""
    return written(value).replace("<0.001", "0.000")


def path(document: Document) -> dict[str, NDArray[Any]]:
    """One head's numbers from queries to sums: (T, K) or (T, T)."""
    (numbers,) = [one["numbers"] for one in document["attentions"] if one["id"] == ATTENTION]
    query, key, value, mixed = (values(document, numbers[name])[HEAD] for name in ("query", "key", "value", "mixed"))
    scores = query.astype(np.float64) @ key.astype(np.float64).T
    scaled = scores * numbers["scale"]
    masked = np.where(np.tri(len(query)) > 0, scaled, -np.inf)
    powers = np.exp(masked - masked.max(axis=1, keepdims=True))
    shares = weights(document, ATTENTION, HEAD).astype(np.float64)
    assert np.allclose(powers / powers.sum(axis=1, keepdims=True), shares, atol=5e-3)  # q and k have 16 bits
    assert np.allclose(shares @ value.astype(np.float64), mixed, atol=5e-3)
    names = ("query", "key", "value", "mixed", "scores", "scaled", "masked", "powers", "shares")
    found_here = (query, key, value, mixed, scores, scaled, masked, powers, shares)
    return {name: np.asarray(one, dtype=np.float64) for name, one in zip(names, found_here, strict=True)}


def test_every_number_of_a_pair_is_the_one_that_the_model_computed(look: Opens) -> None:
    seen = look("translation", f"#level=deep&attention={ATTENTION}&head={HEAD}")
    page, numbers = seen.page, path(seen.document)
    section = view(page, "numbers")
    n, width = numbers["query"].shape
    asks, looked_at = section.get_by_role("group").filter(has=page.locator("legend")).all()
    asks.locator("label").nth(3).click()
    looked_at.locator("label").nth(0).click()
    looked_at.get_by_role("radio").nth(0).press("ArrowRight")  # by hand, then by key; the focus stays
    expect(looked_at.get_by_role("radio").nth(1)).to_be_focused()
    assert state(page, "pair") == {"query": 3, "key": 1}

    text = section.locator("svg text")
    for shape in (f"X{n}×32", f"Q{n}×{width}", f"Kᵀ{width}×{n}", f"S{n}×{n}", f"A{n}×{n}", f"Z{n}×{width}"):
        expect(text.filter(has_text=shape).first).to_be_visible()
    way = section.locator('svg text[font-size="20"]')
    scored = [plain(numbers[name][3, 1]) for name in ("scores", "scaled", "masked")]
    expect(way).to_have_text([*scored, written(numbers["shares"][3, 1])])

    section.get_by_text("All numbers of this pair").click()
    by_number, by_token = section.locator("tbody").evaluate_all(CELLS)
    products = numbers["query"][3] * numbers["key"][1]
    columns = (numbers["query"][3], numbers["key"][1], products, numbers["value"][1], numbers["mixed"][3])
    assert by_number == [list(map(plain, row)) for row in zip(*columns, strict=True)]
    tokens = zip(numbers["masked"][3], numbers["powers"][3], numbers["shares"][3], strict=True)
    assert by_token == [[plain(score), written(power), written(share)] for score, power, share in tokens]

    looked_at.locator("label").nth(4).click()  # what comes later is hidden
    expect(way).to_have_text([plain(numbers["scores"][3, 4]), plain(numbers["scaled"][3, 4]), "−∞", "0.000"])


def test_the_input_of_the_first_layer_is_what_the_steps_add_up_to(look: Opens) -> None:
    """Its numbers are those that the first attention read, where the layer has no norm before it."""
    seen = look("reading", "#level=deep")
    section, entry = view(seen.page, "entry"), seen.document["entries"]["source"]
    section.get_by_label("Token").select_option(index=3)
    (read,) = section.locator("tbody").evaluate_all(CELLS)
    (numbers,) = [one["numbers"] for one in seen.document["attentions"] if one["id"] == "encoder.self.0"]
    assert read[-1] == [plain(value) for value in values(seen.document, numbers["x"])[3, :6]]
    embedding, position = (
        values(seen.document, entry[name]).astype(np.float64)[3, :6] for name in ("embedding", "position")
    )
    assert read[:3] == [[plain(value) for value in row] for row in (embedding, position, embedding + position)]
    chips = section.locator("svg g text").all_text_contents()
    token = seen.document["sequences"]["source"][3]
    assert (token["piece"], str(entry["ids"][3])) in pairwise(chips)


def test_the_scaled_embedding_of_the_paper_is_drawn_with_its_factor(look: Opens) -> None:
    section = view(look("translation", "#level=deep").page, "entry")
    expect(section.locator("svg text").filter(has_text="× 5.66 =")).to_be_visible()  # √32
    before = section.locator("tbody tr").first.inner_text()
    section.get_by_role("button", name="Output").click()
    expect(section.locator("svg text").filter(has_text="<s>")).to_be_visible()
    assert section.locator("tbody tr").first.inner_text() != before


def test_a_part_of_a_letter_is_never_shown_as_its_bytes(look: Opens) -> None:
    seen = look("writing", "#level=deep")
    section = view(seen.page, "next")
    steps = seen.document["generation"]["steps"]
    texts = set()
    for step in range(len(seen.document["written"])):
        seen.page.evaluate("(step) => window.heedful.state.set({ step })", step)
        expect(section.locator("svg [role=img]").first).to_have_attribute(
            "aria-label", re.compile(f"at step {step + 1};")
        )
        texts |= set(section.locator("svg text").all_text_contents())
    assert any("\ufffd" in text for step in steps for text, _ in step["top"])
    assert "◌" in texts
    assert not any("\ufffd" in text or "<0x" in text for text in texts)


def test_scores_before_and_after_scaling_share_one_color_scale(look: Opens) -> None:
    """With a scale of their own, both pictures would be the same."""
    section = view(look("reading", "#level=deep&head=0").page, "numbers")
    pixels = section.evaluate("""async (section) => {
      const read = async (name) => {
        const title = [...section.querySelectorAll("text")].find((text) => text.firstChild?.textContent === name);
        const image = new Image();
        image.src = title.parentNode.querySelector("image").getAttribute("href");
        await image.decode();
        const pen = Object.assign(document.createElement("canvas"), image).getContext("2d");
        pen.drawImage(image, 0, 0);
        return [...pen.getImageData(0, 0, image.width, image.height).data];
      };
      return [await read("S "), await read("S′")];
    }""")
    before, scaled = (np.array(values).reshape(-1, 4)[:, :3].astype(float) for values in pixels)
    strength = [np.abs(colors - [246, 244, 238]).sum(axis=1) for colors in (before, scaled)]  # from the color of 0
    assert strength[1].mean() < 0.8 * strength[0].mean()
