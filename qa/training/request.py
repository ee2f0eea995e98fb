"""A training as requested by a command or a job: from drafts to the registry."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser

from probes.abstention.fitting import FitSettings
from probes.abstention.probe import Kind
from probes.cards import ProbeFiles, ProbeKind, answer_kind
from probes.language_model import WhiteBoxModel
from probes.models import Probe
from probes.taps import Part, Tap
from qa.evaluation.metrics.text import normalised
from qa.exceptions import TrainingDataError
from qa.inference.configured import load_language_model
from qa.inference.white_box import default_tap, form_of, load_white_box, middle_tap
from qa.pipeline.language_model import LanguageModel
from qa.reviews import labels as reviews

from . import labels
from .probe import OnProgress, Outcome, Training, keep, train

NETWORKS: Final = {
    ProbeKind.ABSTENTION: tuple(Kind),
    ProbeKind.EARLY: (Kind.LINEAR, Kind.MLP),
    ProbeKind.JOINT: (),
}


@dataclass(frozen=True, slots=True)
class TrainingRequest:
    """A request to train on drafts of runs, a JSON Lines file and reviews.

    Questions of the golden set are never trained on, whatever their source.

    Attributes:
        layer: The 0-based block; None for the default of the kind.
        network: None for the kind's first.
        begin_from: A probe to fit further; layer, part and network must be its own.
    """

    kind: ProbeKind
    layer: int | None = None
    part: Part = Part.BLOCK
    network: Kind | None = None
    runs: Sequence[int] = ()
    data: Path | None = None
    reviews: bool = False
    folds: int = 5
    any_model: bool = False
    settings: FitSettings = field(default_factory=FitSettings)
    begin_from: Probe | None = None
    promote: bool = False
    note: str = ""


def carry_out(
    request: TrainingRequest,
    *,
    by: AbstractBaseUser | None = None,
    on_progress: OnProgress = lambda _what, _done, _all: None,
) -> Outcome:
    language_model = load_language_model()
    model = model_to_train_on(language_model)
    found = _drafts(request, language_model)
    known = frozenset(model.adapter.groups if model.adapter else ())
    drafts = [draft for draft in found if draft.group not in known]
    trained = train(
        model,
        drafts,
        _training(request, model),
        language_model=language_model.fingerprint,
        directory=settings.PLACES.activations,
        form=form_of(language_model),
        on_progress=on_progress,
    )
    return Outcome(
        keep(trained.files, by=by, note=request.note, activate=request.promote),
        count=len(drafts),
        right=sum(draft.is_right for draft in drafts),
        too_long=trained.too_long,
        known=len(found) - len(drafts),
        folded=trained.folded,
    )


def request_of(given: Mapping[str, Any]) -> TrainingRequest:
    try:
        runs = given.get("runs", [])
        if not isinstance(runs, list):
            raise TypeError(f"runs is {runs!r}, not a list of ids")  # noqa: TRY301  # one error for all
        return TrainingRequest(
            kind=answer_kind(given["kind"]),
            layer=_whole(given, "layer"),
            part=Part(given.get("part", Part.BLOCK)),
            network=Kind(given["network"]) if given.get("network") else None,
            runs=[int(number) for number in runs],
            reviews=given.get("reviews") is True,
            folds=_whole(given, "folds") or 5,
            any_model=given.get("any_model") is True,
            settings=replace(FitSettings(), seed=_whole(given, "seed") or 0),
            promote=given.get("promote") is True,
            note=str(given.get("note", "")),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise TrainingDataError(
            f"The parameters do not describe a training: {error}."
        ) from error


def model_to_train_on(language_model: LanguageModel) -> WhiteBoxModel:
    model = load_white_box(language_model)
    if model is None:
        raise TrainingDataError(
            "Probes are fitted on a model's activations, but there is no model to read "
            "them from: a language server answers and NESCIO_SURROGATE_MODEL is none. "
            "Set it to a model that can be loaded here."
        )
    return model


def _drafts(
    request: TrainingRequest, language_model: LanguageModel
) -> list[labels.LabelledDraft]:
    if not request.runs and request.data is None and not request.reviews:
        raise TrainingDataError(
            "There is nothing to train on: name evaluation runs, a file, or reviews."
        )
    written_by = None if request.any_model else language_model.fingerprint
    runs = labels.drafts_of_runs(request.runs, language_model=written_by)
    files = labels.drafts_of_file(request.data) if request.data else []
    part = reviews.Part.TRAINING
    reviewed = (
        labels.drafts_of_reviews(part, language_model=written_by)
        if request.reviews
        else ()
    )
    golden = {
        normalised(draft.prompt.question)
        for draft in labels.drafts_of_reviews(reviews.Part.GOLDEN)
    }
    found = labels.drawn_together([runs, files, reviewed])
    return [d for d in found if normalised(d.prompt.question) not in golden]


def _training(request: TrainingRequest, model: WhiteBoxModel) -> Training:
    usual = middle_tap if request.kind is ProbeKind.EARLY else default_tap
    layer = usual(model.blocks).layer if request.layer is None else request.layer
    networks = NETWORKS[request.kind]
    network = request.network or next(iter(networks), Kind.LINEAR)
    if networks and network not in networks:
        known = ", ".join(networks)
        raise TrainingDataError(
            f"A probe of the kind {request.kind} cannot be a {network} network; it may "
            f"be: {known}."
        )
    return Training(
        kind=request.kind,
        tap=Tap(layer, request.part),
        settings=replace(request.settings, kind=network),
        inputs=_inputs(model) if request.kind is ProbeKind.JOINT else (),
        folds=request.folds,
        begin_from=request.begin_from.files if request.begin_from else None,
    )


def _inputs(model: WhiteBoxModel) -> list[ProbeFiles]:
    active = Probe.objects.active_for(model.fingerprint)
    return [probe.files for probe in active.exclude(kind=ProbeKind.JOINT)]


def _whole(given: Mapping[str, Any], name: str) -> int | None:
    value = given.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError(f"{name} is {value!r}, not a whole number of at least 0")
    return value
