"""What the model reads before verdicts: an instruction, and examples that we wrote."""

from typing import Final


def instruction(known: str, unknown: str) -> str:
    """Say what the labels mean."""
    return (
        "Some notes answer the question below them, others are about something else. "
        f"Write {known} where the note answers the question, and {unknown} where it "
        "does not.\n\n"
    )


# (note, question, whether the note answers it); about a made-up card issuer.
EXAMPLES: Final = (
    ("The Gold card costs 72 euros a year.", "What does the Gold card cost?", True),
    ("A lost card is replaced within three working days.",
     "Who founded the card's issuer?", False),
    ("Travel insurance covers journeys of up to 60 days.",
     "What is the daily limit at a cash machine?", False),
    ("The Student card is free until its holder turns 27.",
     "Until which age is the Student card free?", True),
    ("Statements are sent on the fifth day of each month.",
     "On which day are statements sent?", True),
    ("An additional card costs 12 euros a year.",
     "How long is an additional card valid?", False),
    ("Payments abroad carry a fee of 1.5 percent.",
     "Which fee is charged for payments abroad?", True),
    ("The branch in Tarnby opens at nine.",
     "When does the branch in Tarnby close?", False),
)  # fmt: skip
