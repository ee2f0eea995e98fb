"""A white-box model's activations and self-assessments, read once and kept."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from probes.language_model import WhiteBoxModel
from probes.taps import Activations, Tap
from qa.training import draft_activations as insides
from qa.training.labels import LabelledDraft
from studies.study import OnProgress, no_progress

from .scores import P_TRUE, VERBALISED
from .self_assessment import SelfAssessment, SelfAssessor

_FILE: Final = "self-assessments.jsonl"


class ReadInsides:
    """`scores.Insides` of labelled drafts.

    Attributes:
        drafts: Those that fit the model's context; all results are in their order.
    """

    def __init__(
        self,
        model: WhiteBoxModel,
        drafts: Sequence[LabelledDraft],
        *,
        directory: Path,
        on_progress: OnProgress = no_progress,
    ) -> None:
        """Encode the drafts without reading anything yet.

        Args:
            model: The model that wrote them.
            directory: Keeps what was read.
        """
        self._model, self._directory, self._progress = model, directory, on_progress
        self._whole = insides.DraftActivations(model, drafts, directory=directory)
        self.drafts = self._whole.drafts
        self._together: tuple[Tap, ...] = ()

    @property
    def language_model(self) -> str:
        return self._model.fingerprint

    @property
    def blocks(self) -> int:
        return self._model.blocks

    def read_together(self, places: Sequence[Tap]) -> None:
        """Read these places with all evidence now, and together in each later pass."""
        self._together = tuple(places)
        self._read(self._whole, (), None)

    def of_sequences(
        self, place: Tap, *, pieces: int | None = None
    ) -> Sequence[Activations]:
        """Return float32 (1 + tokens + 1, width) for each draft."""
        found = self._whole
        if pieces is not None:
            found = insides.DraftActivations(
                self._model, self.drafts, directory=self._directory, pieces=pieces
            )
        self._read(found, [place], pieces)
        return found.of_sequences(place)

    def of_prompts(self, place: Tap) -> Sequence[Activations]:
        """Return float32 (1, width) for each draft: its prompt's last token."""
        self._read(self._whole, [place], None)
        return self._whole.of_prompts(place)

    def own_words(self) -> Mapping[str, Sequence[float]]:
        """Return P(true) and verbalised confidence of each draft.

        Each is stored at once, so an interrupted run continues from there.
        """
        assessor = SelfAssessor(self._model)
        file = self._directory / self._model.fingerprint / _FILE
        kept = dict(_kept(file))
        found = []
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("a", encoding="utf-8") as stream:
            for count, draft in enumerate(self.drafts, start=1):
                key = assessor.key(draft.prompt, draft.answer)
                if key not in kept:
                    kept[key] = assessor.assess(draft.prompt, draft.answer)
                    row = {
                        "key": key,
                        P_TRUE: kept[key].p_true,
                        VERBALISED: kept[key].verbalised,
                    }
                    # The line break comes first and ends an interrupted line.
                    stream.write(f"\n{json.dumps(row)}")
                found.append(kept[key])
                step = "Asking the model about its answers"
                self._progress(step, count, len(self.drafts))
        return {
            P_TRUE: [one.p_true for one in found],
            VERBALISED: [one.verbalised for one in found],
        }

    def _read(
        self, what: insides.DraftActivations, taps: Sequence[Tap], pieces: int | None
    ) -> None:
        evidence = "all evidence" if pieces is None else f"{pieces} of the evidence"
        what.read(
            sorted({*taps, *self._together}),
            on_progress=lambda done, total: self._progress(
                f"Reading answers, {evidence}", done, total
            ),
        )


def _kept(file: Path) -> Iterator[tuple[str, SelfAssessment]]:
    """Yield the kept assessments, without lines that can't be read."""
    if not file.is_file():
        return
    for line in file.read_text(encoding="utf-8").splitlines():
        try:
            row = json.loads(line)
            yield (
                str(row["key"]),
                SelfAssessment(float(row[P_TRUE]), float(row[VERBALISED])),
            )
        except (KeyError, TypeError, ValueError):
            continue
