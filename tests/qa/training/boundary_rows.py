"""Made-up answered prompts whose labels a model's insides can tell."""

from qa.training.labelled_questions import LabelledQuestion
from qa.training.preferences import AnsweredPrompt


def row(number: int, *, is_right: bool, notes: tuple[str, ...] = (), group: str = ""):
    """Return a prompt whose last words before the answer tell whether it is right."""
    mark = "aaaa" if is_right else "zzzz"
    prompt = LabelledQuestion(
        f"q{number} {mark}", ("x",), tuple(f"{note} {mark}" for note in notes),
        group or f"g{number // 3 % 12}",
    )  # fmt: skip
    return AnsweredPrompt(prompt, "x" if is_right else "y", is_right)


def many(count: int) -> list[AnsweredPrompt]:
    """Return prompts of twelve groups, each with a note and without, a third wrong."""
    return [
        row(number, is_right=(number + bool(notes)) % 3 > 0, notes=notes)
        for number in range(count)
        for notes in ((), ("a note",))
    ]
