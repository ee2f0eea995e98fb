"""A question of two steps: the second is found only by what the first has said."""

import pytest

from qa.answers.sources import KnowledgeRetriever, evidence_scope
from qa.pipeline.gates import Reason
from qa.pipeline.monitored import answer_monitored
from qa.pipeline.values import Question
from tests.factories import make_audience, make_entries, make_knowledge_base, make_user
from tests.qa.pipeline.monitored_writers import GivenWriter, draft
from tests.qa.pipeline.values import make_policy

pytestmark = pytest.mark.django_db

ASKED = "In which town was the designer of the Drava bridge born?"
FIRST = "The Drava bridge was designed by Paula Horvat."
SECOND = "Paula Horvat was born in the town of Ptuj."
OTHERS = (
    "The Drava bridge is 220 metres long.",
    "The Drava bridge was closed for repairs in spring.",
    "Anton Berger was born in the town of Celje.",
    "Lidia Kos was born in the town of Koper.",
    "The gold card costs 72 euros a year.",
)


def writes(notes, kept):
    """A model that guesses what no note says, as the best of them do."""
    said = " ".join(piece.text for piece in notes)
    if not kept:
        name = "Paula Horvat" if FIRST in said else "Marko Zupan"
        return draft(f"The bridge was designed by {name}.", "Marko", "Zupan", is_last=False)  # fmt: skip
    town = "Ptuj" if SECOND in said else "Celje"
    return draft(f"Paula Horvat was born in {town}.", "Celje")


def asks_for_the_town(segment):
    return f"{' '.join(segment.split()[:4])} in which town?"


def ask(policy, *, asker=None, audience=None):
    make_entries([FIRST, *OTHERS])
    make_entries([SECOND], audience=audience or make_audience())
    knowledge_base = make_knowledge_base()
    asker = asker or make_user()
    return answer_monitored(
        Question(ASKED),
        writer=GivenWriter(writes, validates=asks_for_the_town),
        retriever=KnowledgeRetriever(evidence_scope(asker, knowledge_base, policy)),
        policy=policy,
    )


def test_the_second_step_is_looked_for_by_what_the_first_one_found():
    found = ask(make_policy(top_k=2, alpha=1.0))

    first, second = found.segments
    assert found.answer == (
        "The bridge was designed by Paula Horvat. Paula Horvat was born in Ptuj."
    )
    assert FIRST in [piece.text for piece in first.evidence]
    assert SECOND not in [piece.text for piece in first.evidence]
    assert SECOND in [piece.text for piece in second.evidence]
    assert "Marko" not in first.queries[0]
    assert "Paula Horvat" in second.queries[0]
    assert "Celje" not in second.queries[0]
    assert second.queries[1] == "Paula Horvat was born in which town?"
    assert found.is_sourced


def test_the_question_alone_does_not_find_the_second_step():
    policy = make_policy(top_k=2, alpha=1.0)
    make_entries([FIRST, SECOND, *OTHERS])
    scope = evidence_scope(make_user(), make_knowledge_base(), policy)

    found = KnowledgeRetriever(scope).look(ASKED, top_k=2, deep=True)

    assert SECOND not in [piece.text for piece in found.evidence]
    assert FIRST in [piece.text for piece in found.evidence]


def test_an_entry_that_the_asker_may_not_see_is_evidence_for_no_step():
    policy = make_policy(top_k=2, alpha=1.0)
    secret = make_audience("board", groups=["board"])

    found = ask(policy, audience=secret)

    assert found.refused is Reason.LOW_CONFIDENCE
    assert found.answer == ""
    assert SECOND not in [piece.text for piece in found.evidence]


def test_who_may_see_it_is_answered():
    policy = make_policy(top_k=2, alpha=1.0)
    secret = make_audience("board", groups=["board"])

    found = ask(policy, asker=make_user(groups=["board"]), audience=secret)

    assert found.answer.endswith("born in Ptuj.")
