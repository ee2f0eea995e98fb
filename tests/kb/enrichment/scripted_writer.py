"""A language model whose replies are a function of what it is given."""

from collections.abc import Callable, Mapping, Sequence

from kb.enrichment.forms import Completion, Form, read_values

Reply = Callable[[str, str], Mapping[str, object]]


class ScriptedWriter:
    """`kb.enrichment.forms.Writer` that needs no weights; counts what it was asked."""

    name = "scripted"
    fingerprint = "5" * 64

    def __init__(self, reply: Reply, log_probability: float | None = -0.1) -> None:
        self.reply = reply
        self.log_probability = log_probability
        self.asked: list[tuple[str, str]] = []

    def fill_in(
        self,
        form: Form,
        given: Sequence[Mapping[str, str]],
        *,
        temperature: float,
        seed: int,
    ) -> Sequence[Completion | None]:
        filled: list[Completion | None] = []
        for values in given:
            about = values[form.given[0][0]]
            self.asked.append((form.name, about))
            wanted = {slot.name for slot in form.wanted}
            said = {
                k: v for k, v in self.reply(form.name, about).items() if k in wanted
            }
            read = read_values(form, said)
            filled.append(
                None if read is None else Completion(read, self.log_probability)
            )
        return filled


CAPITALS = {
    "What is the capital of Peru?": "Lima",
    "What is the capital of Kenya?": "Nairobi",
    "What is the capital of Norway?": "Oslo",
    "What is the capital of Japan?": "Tokyo",
}


def capitals(form: str, about: str) -> Mapping[str, object]:
    """Know a few capitals; of anything else say what can't be read."""
    country = about.rpartition(" ")[2].rstrip("?")
    answer = CAPITALS.get(about, "")
    if form == "question":
        return {"question": f"What is the capital of {country}?"}
    if form == "sentence":
        return {"sentence": f"The capital of {country} is {answer}."}
    return {"answer": answer, "confidence": 0.9}
