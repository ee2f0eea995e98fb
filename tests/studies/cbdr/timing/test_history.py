"""What the model alone is right on, as the past questions of another one."""

from kb.embedding.embedder import load_embedder
from qa.evaluation.cases import Case
from qa.pipeline.values import Question
from studies.cbdr.timing.deciders import TaughtHistory
from studies.cbdr.timing.questions import Part, TimedQuestion


def taught(name: str, question: str, answer: str) -> TimedQuestion:
    case = Case(id=name, question=question, is_answerable=True, references=(answer,))
    return TimedQuestion("nq-open", case, Part.TEACHING)


def test_the_nearest_questions_come_first_with_what_the_model_knew():
    questions = [
        taught("paris", "What is the capital of France?", "Paris"),
        taught("goal", "Who scored in the final of 1990?", "Andreas Brehme"),
        taught("lyon", "Which city is the capital of Spain?", "Madrid"),
    ]
    alone = {
        "paris": {"answer": "It is Paris."},
        "goal": {"answer": "Maradona"},
        "lyon": {"answer": "Lyon"},
    }
    history = TaughtHistory(questions, alone, load_embedder("bundled"))

    found = history.known(
        Question("what is the capital city of france"), own_model="any", limit=2
    )

    assert [(one.id, one.is_known) for one in found] == [
        ("paris", True),
        ("lyon", False),
    ]
