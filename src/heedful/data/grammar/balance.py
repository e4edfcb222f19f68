"""Measures how often each word of the full level is drawn, and prints weights that make the rare ones frequent enough.

A word's weight grows by what is missing to the goal, round after round, over seeds that no test uses. A predicate
counts as rare where its nouns are: they cannot come up without it.
"""

from __future__ import annotations

from collections import Counter
from statistics import mean
from textwrap import fill

from heedful.data.grammar import features
from heedful.data.grammar.choices import inventory
from heedful.data.grammar.corpus import Grammar
from heedful.data.grammar.lexicon import lexicon
from heedful.data.grammar.lexicon_draws import SELDOM

_GOAL, _OF = 90, 60_000  # well above the fifty a word needs, so that chance does not take it away
_MOST = 40  # a word that needs more suits too little, and is given more to suit
_ROUNDS, _SEEDS, _SENTENCES = 8, range(900, 903), 40_000


def expected(seeds: range) -> dict[str, float]:
    """How often each word is expected in a training set, with the weights as they are."""
    inventory.cache_clear()
    met: Counter[str] = Counter()
    for seed in seeds:
        for example in Grammar("full", seed).sample(_SENTENCES):
            met.update(set(features.words(example.frame)))
    share = _OF / (len(seeds) * _SENTENCES)
    return {word: met[word] * share for word in Grammar("full").vocabulary()}


def balance() -> None:
    """Fit the weights in place; print the rarest words of each round, and the table."""
    words = lexicon("full")
    for _ in range(_ROUNDS):
        times = expected(_SEEDS)
        print({word: round(n) for word, n in sorted(times.items(), key=lambda item: item[1])[:12]}, flush=True)
        for predicate in (*words.verbs, *words.adjectives):
            if nouns := (*predicate.objects, *predicate.subjects):
                least = mean(min(times[noun.korean], _GOAL) for noun in nouns)
                times[predicate.lemma] = min(times[predicate.lemma], least)
        for word, n in times.items():
            weight = min(SELDOM.get(word, 1) * (_GOAL / max(n, 5)) ** 0.8, _MOST)
            if weight > 1.1:
                SELDOM[word] = round(weight, 1)
            else:
                SELDOM.pop(word, None)
    print(fill(" ".join(f"{word.replace(' ', '_')}={times}" for word, times in SELDOM.items()), 110))


if __name__ == "__main__":
    balance()
