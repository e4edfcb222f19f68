"""Every label of the page itself, in both languages side by side, and how numbers are written."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ...errors import PictureError, unknown
from .names import NAMES

LANGUAGES = ("en", "ko")
WORDS: dict[str, tuple[str, str]] = {
    # headings
    "facts": ("At a glance", "한눈에 보기"),
    "scores": ("Scores", "점수"),
    "constructions": ("Accuracy by construction", "구문별 정확도"),
    "by_length": ("Score by source length", "원문 길이별 점수"),
    "comparison": ("Runs side by side", "실행 비교"),
    "confusion": ("Which class is taken for which", "어떤 분류를 무엇으로 보는가"),
    "samples": ("Examples", "예"),
    "continuations": ("How it goes on", "이어 쓰기"),
    "images": ("Images, and where the model looked", "이미지와 모델이 본 곳"),
    "forecasts": ("Forecasts", "예측"),
    "attention": ("Attention", "어텐션"),
    "training": ("Training", "학습 과정"),
    "reading": ("The data", "데이터"),
    "positions": ("Positional encoding", "위치 인코딩"),
    "notes": ("Notes", "참고"),
    "contents": ("Contents", "차례"),
    "offline": (
        "Made by Heedful. This page is one file and loads nothing.",
        "Heedful이 만든 페이지입니다. 파일 하나로 되어 있으며 외부에서 아무것도 불러오지 않습니다.",
    ),
    # tables
    "set": ("Set", "평가 집합"),
    "signature": ("Signature", "측정 방식"),
    "construction": ("Construction", "구문"),
    "share_correct": ("Correct", "정답률"),
    "length": ("Source length", "원문 길이"),
    "score": ("Score", "점수"),
    "count": ("Count", "개수"),
    "sentences": ("{n} sentences", "{n}문장"),
    # samples
    "best": ("Best", "가장 좋은 예"),
    "worst": ("Worst", "가장 나쁜 예"),
    "random": ("At random", "무작위 예"),
    "source": ("Input", "입력"),
    "reference": ("Expected", "정답"),
    "output": ("Output", "모델의 답"),
    "exact": ("exact", "정답"),
    "same_as_reference": ("as expected", "정답과 같음"),
    "missing_words": ("expected only", "정답에만 있음"),
    "extra_words": ("in the output only", "모델의 답에만 있음"),
    "nothing": ("(empty)", "(빈 문장)"),
    "out_of": ("{shown} of {total} are shown.", "{total}개 중 {shown}개를 보여 줍니다."),
    "prompt": ("Text", "주어진 글"),
    # classes
    "truth_and_answer": ("Truth (rows) and answer (columns)", "정답(가로줄)과 모델의 답(세로줄)"),
    "confusion_reading": (
        "A row is what the examples are, a column what the model took them for; a cell is the share of its row.",
        "가로줄은 실제 분류, 세로줄은 모델이 고른 분류이고, 칸은 그 줄에서 차지하는 몫입니다.",
    ),
    "mistakes": ("The most frequent mistakes", "가장 잦은 오답"),
    "taken_for": ("{truth} taken for {answer}: {n}", "{truth} → {answer}: {n}개"),
    "class": ("Class", "분류"),
    "probability": ("Probability", "확률"),
    "right": ("right", "정답"),
    "wrong": ("it is {truth}", "정답은 {truth}"),
    "images_reading": (
        "Beside each image, every head of the last layer: what it looked at is clear, the rest is veiled.",
        "이미지 옆은 마지막 층의 헤드들입니다. 많이 본 곳은 또렷하고 나머지는 흐립니다.",
    ),
    # forecasts
    "forecasts_reading": (
        "The line so far, what followed and what was forecast; below, how much each patch was looked at.",
        "지금까지의 값, 실제로 이어진 값, 예측한 값입니다. 아래 띠는 각 조각을 얼마나 보았는지 나타냅니다.",
    ),
    "known": ("known", "알려진 값"),
    "forecast": ("forecast", "예측"),
    "truth": ("truth", "실제"),
    "step_in_time": ("Step", "시점"),
    "patches": ("Attention over the patches", "조각별 어텐션"),
    # attention
    "attention_reading": (
        "A row is a piece that the model read or wrote; its cells show where the model looked for it. "
        "The stronger the colour, the more. Point at a cell for its weight.",
        "한 줄은 모델이 읽거나 쓴 한 조각이고, 칸은 그때 모델이 어디를 보았는지 나타냅니다. "
        "색이 또렷할수록 많이 본 것입니다. 칸에 마우스를 올리면 가중치가 나옵니다.",
    ),
    "mean_of_heads": ("Mean of {n} heads", "헤드 {n}개의 평균"),
    "head": ("Head {name}", "헤드 {name}"),
    "each_head": ("each head", "헤드별"),
    "weight": ("Weight", "가중치"),
    "maps_left_out": (
        "To keep the page small, these maps were left out: {titles}",
        "페이지가 커지지 않도록 다음 어텐션 지도는 뺐습니다: {titles}",
    ),
    # training
    "step": ("Step", "스텝"),
    "loss": ("Loss", "손실"),
    "train": ("training", "학습"),
    "valid": ("validation", "검증"),
    "lowest_loss": ("Lowest validation loss: {value}, at step {step}.", "가장 낮은 검증 손실: {value} ({step} 스텝)."),
    "averaged": (
        "Where there are more than {n} values, a point is the mean of several.",
        "값이 {n}개보다 많으면 한 점은 여러 값의 평균입니다.",
    ),
    "not_finite": (
        "Values that were not finite numbers are gaps in the curves: {n}.",
        "유한한 수가 아닌 값은 곡선에서 비워 두었습니다: {n}개.",
    ),
    # data
    "reason": ("Reason", "이유"),
    "first_at": ("first at {places}", "처음 나온 곳: {places}"),
    # positions
    "table_size": ("{n} positions × {d} dimensions", "위치 {n}개 × 차원 {d}개"),
    "table_corner": (
        "The first {n} of {all_n} positions × the first {d} of {all_d} dimensions",
        "위치 {all_n}개 중 처음 {n}개 × 차원 {all_d}개 중 처음 {d}개",
    ),
    "position": ("Position", "위치"),
    "dimension": ("Dimension", "차원"),
    "positions_reading": (
        "Each row is a position and each column a dimension: blue is above zero, orange below.",
        "가로줄은 위치, 세로줄은 차원입니다. 파란색은 0보다 크고 주황색은 0보다 작습니다.",
    ),
    "waves": ("A few dimensions over the positions", "위치에 따라 달라지는 몇 개의 차원"),
    "yes": ("yes", "예"),
    "no": ("no", "아니요"),
}


@dataclass(frozen=True)
class Words:
    """The labels of one language."""

    language: str

    def __post_init__(self) -> None:
        if self.language not in LANGUAGES:
            raise PictureError(unknown("language", self.language, LANGUAGES))

    def __call__(self, key: str, **values: object) -> str:
        """The label, with the values in their places."""
        return WORDS[key][LANGUAGES.index(self.language)].format(**values)

    def name(self, key: str) -> str:
        """The label of a name that comes with the data; one that is not known stays as it is."""
        known = NAMES.get(key.lower().replace(" ", "_"))
        return key.replace("_", " ") if known is None else known[LANGUAGES.index(self.language)]

    def value(self, value: object) -> str:
        """Anything that stands in a table, short and readable."""
        if value is None:
            return "–"
        if isinstance(value, bool):
            return self("yes" if value else "no")
        if isinstance(value, float):
            return decimal(value)
        if isinstance(value, int):
            return number(value)
        if isinstance(value, list | tuple | set | frozenset):
            return ", ".join(map(self.value, value))
        return str(value)


def number(value: float) -> str:
    """Thousands apart, and of fractions no more than four digits: 12,345, 0.1235, 3e-05."""
    if isinstance(value, int):
        return f"{value:,}"
    if not math.isfinite(value):
        return "–"
    return f"{value:,.0f}" if 10_000 <= abs(value) < 1e12 else f"{value:,.4g}"


def decimal(value: float) -> str:
    """With as many places as its neighbours in a column: 94.10, 0.087."""
    if not 1 <= abs(value) < 10_000:
        return f"{value:.3f}" if 0.1 <= abs(value) < 1 or value == 0 else number(float(value))
    return f"{value:.2f}"
