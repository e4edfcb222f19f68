"""The page in a real browser, opened from a file and without a network, used as a reader would use it."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest
from browsing import (
    CELLS,
    HANGUL,
    SAME_IN_BOTH,
    SAYING,
    VIEWS,
    Opens,
    choose,
    draw_all,
    expect,
    point,
    press,
    state,
    view,
)
from tiny_looks import values, weights

# Opening


@pytest.mark.parametrize("name", list(VIEWS))
def test_it_opens_from_a_file_without_a_network_and_every_view_that_fits_is_drawn(name: str, look: Opens) -> None:
    seen = look(name)
    page = seen.page
    drawn = page.locator("section.view")
    assert sorted(VIEWS[name]) == sorted(str(section.get_attribute("data-view")) for section in drawn.all())
    for each in VIEWS[name]:
        view(page, each)
    assert page.locator(".failure").count() == 0
    expect(page.get_by_text("not why it gave this answer").first).to_be_visible()
    assert seen.troubles == []
    assert [url.split("#")[0] for url in seen.requests if not url.startswith(("data:", "blob:"))] == [
        page.url.split("#")[0]
    ]
    assert seen.requests[0].startswith("file://")


def test_a_policy_of_the_page_itself_keeps_it_from_the_network(look: Opens) -> None:
    seen = look("reading", offline=False)
    requests = "() => fetch('http://127.0.0.1:9/').then(() => 'reached', (error) => error.name)"
    assert seen.page.evaluate(requests) == "TypeError"
    expect(seen.page.locator("#page")).to_be_visible()
    assert any("Content Security Policy" in texts for texts in seen.troubles)
    seen.troubles.clear()


# Pointing


def test_a_token_says_what_it_looks_at_and_what_looks_at_it(look: Opens) -> None:
    seen = look("translation")
    page, tokens = seen.page, seen.document["sequences"]["source"]
    press(page, "level:deep")
    choose(page, attention="Encoder", layer=1, head=2)
    story = view(page, "tokens").locator(".story")
    chip = page.locator('[data-sequence="source"][data-index="2"]')
    expect(chip).to_be_visible()
    chip.hover()
    expect(story).to_contain_text(f"“{tokens[2]['text']}” looks most at")
    wanted = weights(seen.document, "encoder.self.1", 2)
    for row, line in ((wanted[2], story.locator("p").nth(0)), (wanted[:, 2], story.locator("p").nth(1))):
        order = [int(place) for place in np.argsort(-row, kind="stable")[:5]]
        names = ["itself" if place == 2 else f"“{tokens[place]['text']}”" for place in order]
        listed = ", ".join(f"{name} {row[place]:.4f}" for name, place in zip(names, order, strict=True))
        expect(line).to_contain_text(f" {listed}.")
    expect(story).to_contain_text(f"In total it receives {wanted[:, 2].sum():.4f}")
    page.mouse.move(0, 0)
    expect(story).not_to_contain_text("looks most at")


def test_a_token_that_was_clicked_stays_chosen(look: Opens) -> None:
    page = look("reading").page
    story = view(page, "tokens").locator(".story")
    chip = page.locator('[data-sequence="source"][data-index="3"]')
    chip.click()
    page.mouse.move(0, 0)
    expect(chip).to_have_attribute("aria-pressed", "true")
    expect(story).to_contain_text("“reads” looks most at")
    chip.click()
    page.mouse.move(0, 0)
    expect(story).not_to_contain_text("looks most at")


@pytest.mark.parametrize(("kind", "head"), [("Cross", "Mean"), ("Encoder", 3)])
def test_a_cell_of_the_large_map_says_its_weight(kind: str, head: Any, look: Opens) -> None:
    seen = look("translation")
    page, document = seen.page, seen.document
    press(page, "level:deep")
    choose(page, attention=kind, head=head, layer=1)
    source = [token["text"] for token in document["sequences"]["source"]]
    queries = source if kind == "Encoder" else document["written"]
    wanted = weights(document, "encoder.self.1" if kind == "Encoder" else "decoder.cross.1", str(head).lower())
    large = view(page, "head")
    name = "Encoder self-attention" if kind == "Encoder" else "Cross-attention"
    label = f"{name}, Layer 1 · {head if head == 'Mean' else f'Head {head}'}, {len(queries)} × {len(source)} tokens"
    expect(large.locator("svg.map")).to_have_attribute("aria-label", f"Attention weights, {label}")
    cells = large.locator(CELLS)
    for row, column in ((0, 0), (3, 4), (len(queries) - 1, 1)):
        point(page, cells.nth(row * len(source) + column))
        rank = 1 + int((wanted[row] > wanted[row, column]).sum())
        texts = f"“{queries[row]}” → “{source[column]}”: {wanted[row, column]:.4f} · "
        expect(large.locator(".said")).to_contain_text(texts)
        expect(large.locator(".said")).to_contain_text(f"rank {rank} of {len(source)}")


@pytest.mark.parametrize("name", ["into_korean", "recurrent"])
def test_cross_attention_rows_are_labeled_with_predicted_tokens(name: str, look: Opens) -> None:
    """The decoder's own attention keeps the tokens that it read."""
    seen = look(name, "#level=deep")
    page, written = seen.page, seen.document["written"]
    read = [token["text"] for token in seen.document["sequences"]["target"]]
    story = view(page, "tokens").locator(".story")
    assert page.locator('[data-sequence="written"] text').all_text_contents() == written
    page.locator('[data-sequence="written"][data-index="1"]').hover()
    expect(story).to_contain_text(f"For “{written[1]}” the model looks most at")
    expect(story).to_contain_text(f"The last token read by the row that predicts “{written[1]}” is “{read[1]}”.")
    expect(page.locator("#view-tokens p.sentence")).to_contain_text("the row that predicts it")
    names = view(page, "head").locator("svg.map > g").first.locator("text").all_text_contents()
    assert names[-len(written) :] == written
    if name == "recurrent":
        return
    names = view(page, "compare").locator("svg.map > g").first.locator("text").all_text_contents()
    assert names[-len(written) :] == written
    assert "[object" not in view(page, "compare").inner_html()
    asks = view(page, "numbers").locator("fieldset").first.locator("label")
    assert asks.all_text_contents() == written
    choose(page, attention="Decoder")
    expect(asks.first).to_have_text(read[0].replace("▶", "▸"))
    view(page, "tokens")
    expect(page.locator('[data-sequence="target"] text').first).to_have_text(read[0])


def test_a_given_answer_is_not_attributed_to_the_model(look: Opens) -> None:
    generated, scored = look("translation").page, look("into_korean").page
    claims = {
        "writing": ("It gave the end a probability", "the given answer ends. The model gave the end a probability"),
        "cross": ("To write “■”, the model looked", "The given answer has “■” here"),
        "next": ("The model", "The given answer has “■” here, with a probability"),
    }
    for page in (generated, scored):
        page.evaluate("() => window.heedful.state.set({ step: 999 })")
    for name, (of_its_own, of_a_person) in claims.items():
        expect(view(generated, name).locator(".readout").first).to_contain_text(of_its_own)
        expect(view(scored, name).locator(".readout").first).to_contain_text(of_a_person)
    expect(scored.locator(".opening")).to_contain_text("given to the model, not written by it")
    expect(generated.locator(".opening")).not_to_contain_text("given to the model")
    expect(scored.locator("#view-writing h2")).to_have_text("Scoring a given answer")


def test_masked_cells_are_explained_and_not_drawn(look: Opens) -> None:
    seen = look("writing")
    large = view(seen.page, "head")
    tokens = len(seen.document["sequences"]["target"])
    expect(large.locator(CELLS)).to_have_count(tokens * (tokens + 1) // 2)
    point(seen.page, large.locator(CELLS).first, across=1.5)  # the first row, second column
    expect(large.locator(".said")).to_contain_text("it comes later")


def test_a_thumbnail_tells_its_distance_and_entropy_and_becomes_the_large_map(look: Opens) -> None:
    seen = look("into_korean")
    page = seen.page
    press(page, "level:deep")
    choose(page, attention="Decoder")
    thumbs = view(page, "heads").locator(".thumb")
    attentions = [one for one in seen.document["attentions"] if one["id"].startswith("decoder.self")]
    expect(thumbs).to_have_count(sum(len(one["heads"]) for one in attentions))
    heads = [(one["layer"], number, head) for one in attentions for number, head in enumerate(one["heads"])]
    for thumb, (_, _, head) in zip(thumbs.all(), heads, strict=True):
        expect(thumb).to_contain_text(f"{head['distance']:.2f} tokens")
        expect(thumb).to_contain_text(f"{head['entropy']:.2f} bits")
        expect(thumb.locator("image")).to_have_attribute("href", re.compile("^data:image/png"))
    chosen = thumbs.nth(6)
    before = chosen.locator(".frame").evaluate("(frame) => getComputedStyle(frame).stroke")
    chosen.hover()
    assert chosen.locator(".frame").evaluate("(frame) => getComputedStyle(frame).stroke") != before
    chosen.click()
    layer, number, _ = heads[6]
    expect(page.locator('[data-view="head"] svg.map')).to_have_attribute(
        "aria-label", re.compile(f"Layer {layer} · Head {number}")
    )


def shown_share(share: float) -> str:
    """As the page writes a probability."""
    return "<0.1%" if share < 0.001 else f"{100 * share:.{1 if share < 0.1 else 0}f}%"


@pytest.mark.parametrize(("width", "language"), [(1280, "en"), (360, "en"), (1280, "ko"), (360, "ko")])
@pytest.mark.parametrize("name", ["translation", "writing"])
def test_each_layers_likeliest_tokens_are_those_of_the_document(
    name: str, width: int, language: str, look: Opens
) -> None:
    """By pointer and by key; nothing but the box scrolls sideways."""
    seen = look(name, f"#language={language}", viewport={"width": width, "height": 900})
    page, document = seen.page, seen.document
    section = view(page, "lens")
    top, shares = (values(document, document["lens"][each]) for each in ("top", "shares"))
    layers, rows, _ = top.shape
    assert rows == len(document["written"])
    expect(section.locator("svg rect[rx]")).to_have_count(layers * rows)
    map_node, tip = section.get_by_role("button"), section.locator(".figure-tip")
    row = rows - 1
    point(page, section.locator("svg rect[rx]").nth(row * layers + 1))
    expect(tip).to_contain_text("Layer 0" if language == "en" else "층 0")
    for share in shares[1, row]:
        expect(tip).to_contain_text(shown_share(share))
    point(page, section.locator("svg rect[rx]").first)  # the keys go on from here
    page.mouse.move(0, 0)
    expect(tip).to_be_hidden()
    map_node.focus()
    page.keyboard.press("ArrowDown")
    for _ in range(layers - 1):
        page.keyboard.press("ArrowRight")
    expect(tip).to_contain_text(f"Layer {layers - 2}" if language == "en" else f"층 {layers - 2}")
    assert len(str(tip.text_content()).splitlines()) == 6
    step = document["generation"]["steps"][1]
    for _, share in step["top"][:5]:
        expect(tip).to_contain_text(shown_share(share))
    page.keyboard.press("Enter")
    assert state(page, "step") == 1
    assert page.evaluate("() => document.documentElement.scrollWidth") <= width


def test_an_image_patch_shows_its_weight(look: Opens) -> None:
    seen = look("image")
    drawn = view(seen.page, "image")
    row = weights(seen.document, "encoder.self.1", "mean")[0, 1:]  # from the class token, over the patches
    best = int(row.argmax())
    share = f"{100 * row[best]:.{1 if row[best] < 0.1 else 0}f}%"
    expect(drawn.locator(".figure-note")).to_contain_text(f"row {best // 4 + 1}, column {best % 4 + 1}: {share}")


# Sliding and switching


def test_the_slider_goes_through_the_answer(look: Opens) -> None:
    seen = look("translation")
    page, steps = seen.page, seen.document["generation"]["steps"]
    writing = view(page, "writing")
    slider, texts = writing.get_by_role("slider"), writing.locator(".readout").first
    slider.focus()
    for key, row in (("Home", 0), ("ArrowRight", 1), ("End", len(steps) - 1)):
        slider.press(key)
        share = math.exp(steps[row]["logprob"])
        percentage = "<0.1%" if share < 0.001 else f"{100 * share:.{1 if share < 0.1 else 0}f}%"
        expect(texts).to_contain_text(f"probability of {percentage}")
        expect(writing.locator(".place")).to_have_text(f"{row + 1} of {len(steps)}")
        if row < len(steps) - 1:
            expect(texts).to_contain_text(f"“{steps[row]['token'].strip()}”")
    following = view(page, "next")
    for text, _ in steps[-1]["top"][:3]:
        whole = re.sub("(\ufffd|<0x[0-9A-F]{2}>)+", "◌", text)  # a part of a letter has a sign of its own
        expect(following.locator("svg.next")).to_contain_text(whole.strip() or "␣")


def test_layer_head_and_kind_change_every_number(look: Opens) -> None:
    seen = look("translation")
    page, document = seen.page, seen.document
    press(page, "level:deep")
    large = view(page, "head")
    for kind, layer, head, name in (
        ("Encoder", 0, 1, "encoder.self.0"),
        ("Encoder", 1, 1, "encoder.self.1"),
        ("Encoder", 1, 3, "encoder.self.1"),
        ("Cross", 0, 3, "decoder.cross.0"),
    ):
        choose(page, attention=kind, layer=layer, head=head)
        expect(large.locator("svg.map")).to_have_attribute("aria-label", re.compile(f"Layer {layer} · Head {head},"))
        wanted = weights(document, name, head)
        texts = large.locator(f"{CELLS} + text").all_text_contents()
        assert texts == [f"{value:.2f}" for value in wanted.flat if value >= 0.005]
        assert state(page, "attention") == name


def test_the_level_of_detail_changes_the_texts(look: Opens) -> None:
    page = look("reading").page
    sentence = page.locator("#view-head .sentence")
    expect(sentence).to_contain_text("The stronger the color")
    assert page.locator(".facts code").count() == 0
    press(page, "level:deep")
    expect(sentence).to_contain_text("the softmax of the scores")
    expect(page.locator(".facts")).to_contain_text("d_model 32")


@pytest.mark.parametrize("name", ["translation", "image", "series"])
def test_every_label_is_translated_to_korean(name: str, look: Opens) -> None:
    seen = look(name, "#level=deep")
    page, labels = seen.page, {one["label"] for one in seen.document["classes"] or ()}

    def english() -> set[str]:
        texts = page.locator(SAYING).all_text_contents()
        return (
            {text for text in texts if re.search("[A-Za-z]{3}", text) and not HANGUL.search(text) and "→" not in text}
            - labels
            - SAME_IN_BOTH
        )

    draw_all(page)
    assert len(english()) > 25
    press(page, "language:ko")
    expect(page.locator("html")).to_have_attribute("lang", "ko")
    expect(page.locator("#view-head h2")).to_have_text("헤드 하나 자세히 보기")
    assert all(map(HANGUL.search, page.locator("h2").all_text_contents()))
    expect(page.locator('[data-view="numbers"]')).to_contain_text("√d_k")
    assert english() == set()
    press(page, "language:en")
    expect(page.locator("#view-head h2")).to_have_text("One head in detail")


def test_the_theme_follows_the_system_and_the_button(look: Opens) -> None:
    for scheme, other in (("light", "dark"), ("dark", "light")):
        page = look("reading", color_scheme=scheme).page
        ground = "() => getComputedStyle(document.body).backgroundColor"
        before = page.evaluate(ground)
        expect(page.locator("html")).to_have_attribute("data-theme", scheme)
        press(page, "theme")
        expect(page.locator("html")).to_have_attribute("data-theme", other)
        assert page.evaluate(ground) != before


def test_every_key_does_what_the_help_says(look: Opens) -> None:
    page = look("translation").page
    page.evaluate("() => window.heedful.state.set({ attention: 'decoder.cross.0', head: 'mean', step: 3 })")
    for key, name, value in (
        ("ArrowLeft", "step", 2),
        ("ArrowRight", "step", 3),
        ("ArrowUp", "attention", "decoder.cross.1"),
        ("ArrowDown", "attention", "decoder.cross.0"),
        ("]", "head", 0),
        ("]", "head", 1),
        ("[", "head", 0),
        ("m", "head", "mean"),
        ("l", "level", "deep"),
        ("k", "language", "ko"),
        ("ㅏ", "language", "en"),
        ("d", "theme", "dark"),
    ):
        if key == "ㅏ":
            page.evaluate(
                "() => document.body.dispatchEvent(new KeyboardEvent('keydown', { key: 'ㅏ', bubbles: true }))"
            )
        else:
            page.keyboard.press(key)
        assert state(page, name) == value, key
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_be_visible()
    assert page.get_by_role("dialog").locator("dt").count() == 9
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_be_hidden()


def test_the_keyboard_alone_reaches_tokens_cells_and_thumbnails(look: Opens) -> None:
    seen = look("reading")
    page = seen.page
    view(page, "tokens")
    page.locator('.chip[tabindex="0"]').focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    assert state(page, "pinned") == {"sequence": "source", "index": 1}
    large = view(page, "head")
    large.locator(".map-frame").focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowRight"):
        page.keyboard.press(key)
    expect(large.locator(".said")).to_contain_text("“the” gives")
    page.keyboard.press("Enter")
    assert state(page, "pair") == {"query": 1, "key": 1}
    view(page, "heads").locator('.thumb[tabindex="0"]').focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    assert state(page, "head") == 1


def test_the_map_leads_from_the_model_to_a_pair_of_tokens(look: Opens) -> None:
    seen = look("translation")
    page, document = seen.page, seen.document
    section = view(page, "model")
    section.locator("[data-block='encoder.0']").click()
    assert state(page, "attention") == "encoder.self.0"
    order = ["self_attention_norm", "self_attention", "feed_forward_norm", "feed_forward"]  # pre-norm
    blocks = section.locator("[data-block^='encoder.'][data-block*='f']").evaluate_all(
        "(all) => all.map((node) => node.dataset.block)"
    )
    assert [block for block in blocks if block.split(".")[1] in order] == [f"encoder.{name}" for name in order]
    section.locator("[data-block='decoder.cross_attention']").focus()
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Tab")
    sides = [len(document["sequences"][name]) for name in ("target", "source")]
    expect(section.locator(".readout")).to_contain_text(f"4 heads with {sides[0]} × {sides[1]} weights")
    page.keyboard.press("Enter")
    assert (state(page, "attention"), state(page, "view")) == ("decoder.cross.0", "heads")
    expect(page.locator("#title-heads")).to_be_focused()
    view(page, "model").get_by_role("group", name="Heads").get_by_role("button", name="Head 2").click()
    assert (state(page, "head"), state(page, "view")) == (2, "head")
    page.evaluate("() => window.heedful.state.set({ pair: { query: 2, key: 1 } })")
    pair = f"{document['written'][2]} → {document['sequences']['source'][1]['text']}"
    view(page, "model").get_by_role("navigation").get_by_role("button").filter(has_text=pair).click()
    assert state(page, "view") == "numbers"


@pytest.mark.parametrize("name", ["translation", "writing", "reading", "image", "series"])
def test_every_block_of_the_map_opens_a_view(name: str, look: Opens) -> None:
    page = look(name).page
    section = view(page, "model")
    section.locator("[data-keep=layer]").click()
    blocks = section.locator("[data-block]")
    expect(blocks.filter(has_text="Feed-forward")).not_to_have_count(0)
    for block in blocks.all():
        page.evaluate("() => window.heedful.state.set({ view: null })")
        block.focus()
        block.press("Enter")
        assert state(page, "view") is not None, block.get_attribute("data-block")


def test_the_address_keeps_what_was_chosen(look: Opens) -> None:
    page = look("translation").page
    choose(page, attention="Encoder", head=2)
    press(page, "level:deep")
    expect(page).to_have_url(re.compile("head=2"))
    address = "#" + page.url.split("#")[1]
    again = look("translation", address).page
    assert [state(again, key) for key in ("attention", "head", "level")] == ["encoder.self.1", 2, "deep"]
