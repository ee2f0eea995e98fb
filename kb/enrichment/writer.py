"""What enrichment asks of a language model, whichever it is."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from .forms import Form


@dataclass(frozen=True, slots=True)
class Completion:
    """A form filled in.

    Attributes:
        values: By the slots' names, checked against the form's schema: text on one
            line, a confidence in [0, 1].
        log_probability: Mean natural log-probability of the tokens of the first text
            slot; None where the model does not tell.
    """

    values: Mapping[str, str | float]
    log_probability: float | None

    def text(self, name: str) -> str:
        """Return a text slot's value."""
        return str(self.values[name])


class Writer(Protocol):
    """A language model that fills in forms."""

    @property
    def name(self) -> str:
        """As people know the model."""
        ...

    @property
    def fingerprint(self) -> str:
        """64 hex digits that tell it from every other model and way of asking."""
        ...

    def fill_in(
        self,
        form: Form,
        given: Sequence[Mapping[str, str]],
        *,
        temperature: float,
        seed: int,
    ) -> Sequence[Completion | None]:
        """Fill the form in once for each of `given`, in their order.

        Args:
            temperature: 0 for what is likeliest.
            seed: Of what is drawn at a temperature above 0.

        Returns:
            None in the place of a reply that can't be read.

        Raises:
            UnavailableError: The model can't be asked now.
        """
        ...
