"""What people would say: of the sentences that the grammar allows, the full level keeps those whose parts suit each
other. What suits what is data (`lexicon_sense`); the demo's few words do without.
"""

from __future__ import annotations

from heedful.data.grammar.frames import Sentence
from heedful.data.grammar.sense.clauses import suits
from heedful.data.grammar.sense.joins import follow, is_said_in_passing
from heedful.data.grammar.sense.moods import JUDGES
from heedful.data.grammar.sense.parts import is_elder, thing_of
from heedful.data.grammar.to_english import is_message

__all__ = ["makes_sense", "suits"]


def makes_sense(sentence: Sentence) -> bool:
    """Whether somebody would say this."""
    clauses, mood = sentence.clauses, sentence.mood
    if not all(map(suits, clauses)) or (mood != "statement" and any(clause.scrambled for clause in clauses)):
        return False
    if len(clauses) > 1:
        return all(map(is_said_in_passing, clauses)) and follow(clauses)
    clause = clauses[0]
    if clause.bare_object and (is_elder(clause) or thing_of(clause) == "이"):
        return False
    if sentence.level == "합쇼" and clause.tense == "future" and is_message(clause):
        return False  # programs do not announce what they will do
    return mood not in JUDGES or JUDGES[mood](clause)
