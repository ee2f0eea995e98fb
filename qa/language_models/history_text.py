"""What the model reads before past questions: an instruction, and examples that we wrote.

They are all there is while a knowledge base has no history yet. Half of them ask what a
model can't know: what changes, what is private, what hardly anybody wrote down.
"""

from typing import Final


def instruction(known: str, unknown: str) -> str:
    """Say what the labels mean."""
    return (
        "Some questions can be answered rightly from memory, others can not. Write "
        f"{known} for a question that you know the right answer to, and {unknown} for "
        "one that you are not sure of, and for every question about what is recent, "
        "latest or current.\n\n"
    )


# (question, whether it can be answered from memory)
EXAMPLES: Final = (
    ("What is the capital of France?", True),
    ("What is the weather like in Lisbon today?", False),
    ("Who was the second mayor of Alder Creek?", False),
    ("How many days are there in a week?", True),
    ("Who wrote Romeo and Juliet?", True),
    ("Who won the most recent election in Ghent?", False),
    ("What is the largest planet of the solar system?", True),
    ("How many visitors came to the fair of Oberried in 1987?", False),
    ("Which language is spoken in Brazil?", True),
    ("What does a barrel of oil cost now?", False),
    ("Who composed the school song of Hillcrest Primary?", False),
    ("How many legs has a spider?", True),
    ("Who painted the Mona Lisa?", True),
    ("Which of my invoices is overdue?", False),
    ("Which gas do plants take from the air?", True),
    ("What is the latest version of the Tarn compiler?", False),
    ("Who was the first president of the United States?", True),
    ("What was the maiden name of the baker in Keld?", False),
    ("Who is the current coach of the Lundby rowing club?", False),
    ("In which year did the Second World War end?", True),
)
