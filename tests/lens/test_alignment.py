"""Word alignment from attention, against cases worked out by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import heedful
from heedful.lens.alignment import (
    AlignmentError,
    Choice,
    Example,
    Gold,
    Head,
    best_links,
    choose_head,
    diagonal_links,
    error_rate,
    predicting_rows,
    with_means,
    word_weights,
)

LINKS = st.frozensets(st.tuples(st.integers(0, 3), st.integers(0, 3)))


def gold(*sure: tuple[int, int], possible: tuple[tuple[int, int], ...] = ()) -> Gold:
    return Gold(frozenset(sure), frozenset(possible))


def test_tokens_are_merged_to_words_by_hand() -> None:
    """Source a|bc|end, target xy|z|end in tokens: columns are summed, rows averaged, the ends left out."""
    weights = torch.tensor(
        [
            [0.1, 0.2, 0.3, 0.4],  # x of word 0
            [0.5, 0.1, 0.1, 0.3],  # y of word 0
            [0.0, 0.6, 0.3, 0.1],  # z of word 1
            [0.0, 0.0, 0.0, 1.0],  # the end
        ]
    )
    merged = word_weights(weights, source_words=[0, 1, 1, None], target_words=[0, 0, 1, None])
    torch.testing.assert_close(merged, torch.tensor([[0.3, 0.35], [0.0, 0.9]]))


def test_words_of_scattered_tokens_are_merged_too() -> None:
    weights = torch.tensor([[0.25, 0.5, 0.25]])
    torch.testing.assert_close(word_weights(weights, [0, 1, 0], [0]), torch.tensor([[0.5, 0.5]]))


@pytest.mark.parametrize(
    ("sources", "targets", "word_map"),
    [([0], [0, 1], "1 source tokens"), ([0, 2], [0, 1], "without gaps"), ([0, 1], [1, 1], "target words are numbered")],
)
def test_maps_that_do_not_fit_are_refused(sources: list[int], targets: list[int], word_map: str) -> None:
    with pytest.raises(AlignmentError, match=word_map):
        word_weights(torch.ones(2, 2), sources, targets)


def test_links_by_hand() -> None:
    weights = torch.tensor([[0.6, 0.3, 0.1], [0.5, 0.4, 0.1], [0.1, 0.2, 0.2]])  # (target, source)
    assert best_links(weights) == {(0, 0), (0, 1), (1, 2)}
    assert best_links(weights[:0]) == best_links(weights[:, :0]) == frozenset()


def test_the_diagonal_by_hand() -> None:
    assert diagonal_links(3, 3) == {(0, 0), (1, 1), (2, 2)}
    assert diagonal_links(2, 4) == {(0, 0), (0, 1), (1, 2), (1, 3)}
    assert diagonal_links(4, 2) == {(1, 0), (3, 1)}
    assert diagonal_links(0, 2) == diagonal_links(2, 0) == frozenset()


def test_error_rate_by_hand() -> None:
    """A = {a, b, c}, S = {a, d}, P = {a, d, b}: hits 1 and 2, so 1 − 3/5."""
    a, b, c, d = (0, 0), (1, 1), (2, 2), (3, 3)
    assert error_rate([{a, b, c}], [gold(a, d, possible=(b,))]) == pytest.approx(0.4)
    assert error_rate([{a, b}], [gold(a, b)]) == 0
    assert error_rate([{a}], [gold(b)]) == 1
    assert error_rate([set()], [gold()]) == 0
    assert error_rate([{a, b, c}, {d}], [gold(a, d, possible=(b,)), gold(d)]) == pytest.approx(1 - 5 / 7), "of sums"


@given(predicted=LINKS, sure=LINKS)
def test_with_one_set_the_error_rate_is_one_minus_f1(predicted: frozenset[Any], sure: frozenset[Any]) -> None:
    hits = len(predicted & sure)
    if hits:
        precision, recall = hits / len(predicted), hits / len(sure)
        assert error_rate([predicted], [Gold(sure)]) == pytest.approx(1 - 2 * precision * recall / (precision + recall))


def test_the_head_that_aligns_best_is_chosen() -> None:
    straight, crossed = torch.eye(2), torch.eye(2).flip(0)
    maps = {Head(0, 0): straight, Head(0, 1): crossed, Head(1, 0): crossed * 0.9, Head(1, 1): straight * 0.8}
    examples = [Example(with_means(maps), gold((1, 0), (0, 1))) for _ in range(2)]
    choice = choose_head(examples)
    assert isinstance(choice, Choice)
    assert (choice.head, choice.error_rate) == (Head(0, 1), 0.0), "of the two crossed heads, the first"
    assert choice.rates[Head(0, 0)] == 1.0
    assert choice.rates[Head(1)] == 0.0, "in layer 1 the crossed head weighs more than the straight one"
    assert set(choice.rates) == {*maps, Head(0), Head(1), Head()}
    torch.testing.assert_close(examples[0].weights[Head()], (1.8 * straight + 1.9 * crossed) / 4)


def test_choosing_needs_examples_of_the_same_heads() -> None:
    with pytest.raises(AlignmentError, match="there are none"):
        choose_head([])
    example, other = Example({Head(0, 0): torch.eye(1)}, gold()), Example({Head(0, 1): torch.eye(1)}, gold())
    with pytest.raises(AlignmentError, match="different heads"):
        choose_head([example, other])
    with pytest.raises(AlignmentError, match="mean of heads"):
        with_means({Head(0): torch.eye(1)})


def test_heads_say_what_they_are() -> None:
    assert [str(head) for head in (Head(2, 3), Head(2), Head())] == [
        "layer 2, head 3",
        "layer 2, mean of heads",
        "mean of all heads",
    ]


def recorded(preset: str, target_in: Sequence[int] = (1, 5, 6, 7), **choice: Any) -> heedful.lens.Recording:
    torch.manual_seed(0)
    model = heedful.build(preset, vocab_size=20, d_model=16).eval()
    with torch.no_grad(), heedful.record(model, **choice) as recording:
        model(torch.arange(10).view(2, 5), torch.tensor([target_in, target_in]))
    return recording


def test_every_head_recorded_is_there_under_its_number() -> None:
    recording = recorded("tiny", heads=[1, 3])
    rows = predicting_rows(recording, 1, n_target=3, n_source=4)
    assert [*rows] == [Head(layer, head) for layer in recording.cross for head in (1, 3)]
    for layer, weights in recording.cross.items():
        for place, head in enumerate((1, 3)):
            torch.testing.assert_close(rows[Head(layer, head)], weights[1, place, :3, :4])


@pytest.mark.parametrize("preset", ["tiny", "recurrent"])
def test_a_tokens_row_is_the_one_that_predicts_it(preset: str) -> None:
    """Token 1 of the target goes in at place 2: its own row cannot know it, and the row after it must."""
    before = predicting_rows(recorded(preset, (1, 5, 6, 7)), 0, 4, 5)
    after = predicting_rows(recorded(preset, (1, 5, 9, 7)), 0, 4, 5)
    changed = [max(float((before[head][row] - after[head][row]).abs().max()) for head in before) for row in range(4)]
    first = 2 if preset == "tiny" else 3  # a recurrent step looks before it reads its input
    assert max(changed[:first]) == 0
    assert min(changed[first:]) > 0


def test_additive_attention_gives_one_map() -> None:
    recording = recorded("recurrent")
    rows = predicting_rows(recording, 0, n_target=4, n_source=5)
    assert [*with_means(rows)] == [Head(0, 0)]
    torch.testing.assert_close(rows[Head(0, 0)].sum(dim=1), torch.ones(4))


@pytest.mark.parametrize(("row", "n_target", "n_source"), [(2, 1, 1), (-1, 1, 1), (0, 5, 1), (0, 1, 6)])
def test_rows_that_were_not_recorded_are_refused(row: int, n_target: int, n_source: int) -> None:
    with pytest.raises(AlignmentError, match="2 sentences of 4 and 5"):
        predicting_rows(recorded("tiny"), row, n_target, n_source)


def test_without_cross_attention_there_is_no_alignment() -> None:
    with pytest.raises(AlignmentError, match="encoder-decoder"):
        predicting_rows(heedful.lens.Recording(), 0, 1, 1)
