"""Labelled answers: what calibration and curves are made of."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LabelledAnswer:
    """One question whose signals were measured and whose truth is known.

    Attributes:
        id: Unique among those it is used with.
        group: What must not be torn apart by resampling or splitting (an article).
        signals: By name, as they were stored; None or absent where not measured.
        is_answerable: Whether it should be answered; None where only the draft is judged.
        is_correct: Whether the draft is right; None where none was written.
    """

    id: str
    group: str
    signals: Mapping[str, float | None]
    is_answerable: bool | None
    is_correct: bool | None

    @property
    def is_wrong_if_shown(self) -> bool:
        """Whether showing it would show something wrong; a missing draft would."""
        return self.is_answerable is False or self.is_correct is not True
