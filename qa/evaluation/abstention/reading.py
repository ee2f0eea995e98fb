"""What a white-box model held inside, and says of its answers, read once and kept."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from probes.language_model import WhiteBoxModel
from probes.language_model.taps import Tap
from qa.language_models.places import tap_of
from qa.language_models.self_assessment import SelfAssessment, SelfAssessor
from qa.pipeline.activations import Activations, Place
from qa.training import insides
from qa.training.labelled import LabelledDraft

from .scores import P_TRUE, VERBALISED

OnProgress = Callable[[str, int, int], None]
_FILE: Final = "self-assessments.jsonl"


class ReadInsides:
    """`values.Insides` of labelled drafts.

    Attributes:
        drafts: Those that fit the model's context, in the order of all that is told.
    """

    def __init__(
        self,
        model: WhiteBoxModel,
        drafts: Sequence[LabelledDraft],
        *,
        directory: Path,
        on_progress: OnProgress = lambda _what, _done, _total: None,
    ) -> None:
        """Encode the drafts; nothing is read yet.

        Args:
            model: The model that wrote them.
            drafts: What is to be read.
            directory: Where what was read is kept.
            on_progress: Told what is done, how much of it, of how much.
        """
        self._model, self._directory, self._tell = model, directory, on_progress
        self._whole = insides.Insides(model, drafts, directory=directory)
        self.drafts = self._whole.drafts
        self._together: tuple[Tap, ...] = ()

    @property
    def language_model(self) -> str:
        """Fingerprint of the model."""
        return self._model.fingerprint

    @property
    def blocks(self) -> int:
        """How many blocks the model has."""
        return self._model.blocks

    def read_together(self, places: Sequence[Place]) -> None:
        """Read these places in one pass from now on, and all evidence at once."""
        self._together = tuple(map(tap_of, places))
        self._read(self._whole, (), None)

    def of_sequences(
        self, place: Place, *, pieces: int | None = None
    ) -> Sequence[Activations]:
        """Return for each draft float32 (1 + its tokens + 1, width)."""
        found = self._whole
        if pieces is not None:
            found = insides.Insides(
                self._model, self.drafts, directory=self._directory, pieces=pieces
            )
        self._read(found, [tap_of(place)], pieces)
        return found.of_sequences(tap_of(place))

    def of_prompts(self, place: Place) -> Sequence[Activations]:
        """Return for each draft float32 (1, width) of its prompt's last token."""
        self._read(self._whole, [tap_of(place)], None)
        return self._whole.of_prompts(tap_of(place))

    def own_words(self) -> Mapping[str, Sequence[float]]:
        """Return P(true) and verbalised confidence of each draft.

        Every answer is kept as it is given: a broken-off run goes on from there.
        """
        assessor = SelfAssessor(self._model)
        file = self._directory / self._model.fingerprint / _FILE
        kept = dict(_kept(file))
        found = []
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("a", encoding="utf-8") as stream:
            for number, draft in enumerate(self.drafts, start=1):
                key = assessor.key(draft.prompt, draft.answer)
                if key not in kept:
                    kept[key] = assessor.assess(draft.prompt, draft.answer)
                    said = {
                        "key": key,
                        P_TRUE: kept[key].p_true,
                        VERBALISED: kept[key].verbalised,
                    }
                    # The line break comes first: one that was broken off ends there.
                    stream.write(f"\n{json.dumps(said)}")
                found.append(kept[key])
                self._tell("Asking the model of its answers", number, len(self.drafts))
        return {
            P_TRUE: [one.p_true for one in found],
            VERBALISED: [one.verbalised for one in found],
        }

    def _read(
        self, what: insides.Insides, taps: Sequence[Tap], pieces: int | None
    ) -> None:
        named = "all evidence" if pieces is None else f"{pieces} of the evidence"
        what.read(
            sorted({*taps, *self._together}),
            on_progress=lambda done, total: self._tell(
                f"Reading answers, {named}", done, total
            ),
        )


def _kept(file: Path) -> Iterator[tuple[str, SelfAssessment]]:
    """Yield what is kept; a line that can't be read is asked again."""
    if not file.is_file():
        return
    for line in file.read_text(encoding="utf-8").splitlines():
        try:
            said = json.loads(line)
            yield (
                str(said["key"]),
                SelfAssessment(float(said[P_TRUE]), float(said[VERBALISED])),
            )
        except (KeyError, TypeError, ValueError):
            continue
