"""Measure how often each word of the full corpus is drawn, and print weights that make the rare ones frequent enough.

A word's weight grows by what is missing to the goal, round after round, over seeds that no test uses. A predicate
counts as rare where its nouns are: they cannot come up without it. The output is the rows of
src/heedful/demo/tables/sampling_weights.tsv.
"""

from __future__ import annotations

from collections import Counter
from statistics import mean

from heedful.demo import Grammar
from heedful.demo.inventory import inventory, sampling_weights
from heedful.demo.lexicon import lexicon
from heedful.demo.splits import lemmas

GOAL, TRAINING_SENTENCES = 90, 60_000  # well above the fifty a word needs, so that chance does not take it away
MAX_WEIGHT = 40  # a word that needs more suits too little, and should be given more to suit
ROUNDS, SEEDS, SAMPLES = 8, range(900, 903), 40_000


def expected_counts() -> dict[str, float]:
    """How often each word is expected in a training set, with the weights as they are."""
    inventory.cache_clear()
    counts: Counter[str] = Counter()
    for seed in SEEDS:
        for example in Grammar("full", seed).sample(SAMPLES):
            counts.update(set(lemmas(example.frame)))
    share = TRAINING_SENTENCES / (len(SEEDS) * SAMPLES)
    return {word: counts[word] * share for word in Grammar("full").vocabulary()}


def main() -> None:
    """Fit the weights; print the rarest words of each round, and the table."""
    words, weights = lexicon("full"), sampling_weights()
    for _ in range(ROUNDS):
        counts = expected_counts()
        print("#", {word: round(n) for word, n in sorted(counts.items(), key=lambda item: item[1])[:12]}, flush=True)
        for predicate in (*words.verbs, *words.adjectives):
            if nouns := (*predicate.objects, *predicate.subjects):
                least = mean(min(counts[noun.korean], GOAL) for noun in nouns)
                counts[predicate.lemma] = min(counts[predicate.lemma], least)
        for word, n in counts.items():
            weight = min(weights.get(word, 1) * (GOAL / max(n, 5)) ** 0.8, MAX_WEIGHT)
            if weight > 1.1:
                weights[word] = round(weight, 1)
            else:
                weights.pop(word, None)
    print("word\tweight", *(f"{word}\t{weight:g}" for word, weight in weights.items()), sep="\n")


if __name__ == "__main__":
    main()
