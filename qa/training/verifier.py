"""Fitting a verifier on public data: read, retrieve candidates, fit, measure."""

import hashlib
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Final

import torch
from torch import nn

from probes.verifier.card import VerifierCard, base_directory, read_card
from probes.verifier.cross_encoder import CrossEncoder, encoder_in_use
from probes.verifier.fitting import (
    Example,
    VerifierSettings,
    fit_cross_encoder,
    fit_late_interaction,
    fit_verifier,
    set_weights,
)
from probes.verifier.late_interaction import LateInteraction
from probes.verifier.network import Interaction, Members, Tuned
from probes.verifier.reading import Reader, upper_layers
from probes.verifier.scoring import Verifier, load_network, save_verifier
from qa.exceptions import TrainingDataError

from .knowledge_sets import KnowledgeSet, find
from .verifier_calibration import calibrate_verifier
from .verifier_candidates import examples_of
from .verifier_desks import (
    HELD_OUT_DESK,
    HELD_OUT_FAQ,
    read_acid,
    read_banking77,
    read_covid_faq,
    read_hint3,
    read_stack_faq,
)
from .verifier_sources import (
    in_paragraphs,
    read_natural_questions,
    read_qamr,
    read_selqa,
    read_squad,
    read_squad_train,
)

OnProgress = Callable[[str, int, int], None]

_ARTICLES_OF_SQUAD2: Final = "squad-v2.0-24-articles.json"


@dataclass(frozen=True, slots=True)
class VerifierTraining:
    """The data that a verifier is fitted on, and the settings.

    Attributes:
        data: A directory with the public files, which may be in subdirectories.
        articles: The articles of SQuAD 2.0 to learn from; the others stay unseen.
        held_out: Invented organisations, and threads of StackFAQ, used only to
            calibrate the probabilities and to measure.
        limits: The most questions used of each public set.
        unanswerable: Number of unanswerable questions used of SQuAD2-CR.
        share: The share of the public questions within `limits` on which nets and
            layers are fitted; the cross-encoder is fitted on all.
        repeats: How often each question about the invented organisations is used.
        members: Nets in the ensemble, each fitted from its own random seed.
        tuned: Number of the embedder's last layers that are fitted too.
        nets_alone: Settings for fitting the nets before the layers are fitted with
            them.
        by_tokens: Settings for fitting the comparison by tokens, on fixed layers.
        cross: Settings for the cross-encoder, which takes longest by far; with 0
            epochs, an earlier one is kept and a new verifier has none.
        exchanged: The share of the public questions that are also asked with one thing
            exchanged.
        begin_from: The directory of a verifier whose nets, layers and cross-encoder are
            fitted further.
    """

    data: Path
    articles: Sequence[str]
    held_out: Sequence[str] = (
        "airport", "broker_trading_rules", "coworking_space", "documents_credit_union",
        "documents_hospital_wards", "documents_travel_cover", "documents_university_it",
        "energy_supplier", "hospital",
        "hospital_nursing_guidelines", "household_electricity_tariffs", "land_registry",
        "mental_health_service", "motor_insurer", "museum", "naturalisation_office",
        "online_grocer", "online_shop", "optician_chain", "passport_office", "patent_office",
        "payment_card_terms", "securities_account_terms", "ski_resort", "travel_insurer",
        "vacation_rentals", "veterinary_clinic", HELD_OUT_FAQ,
    )  # fmt: skip
    limits: dict[str, int] = field(
        default_factory=lambda: {
            "new_wiki": 7800, "squad2": 4000, "squad_train": 24_000, "qamr_facts": 1500,
            "qamr_pairs": 6000, "banking77": 5000,
        }
    )  # fmt: skip
    unanswerable: int = 7500
    share: float = 0.35
    repeats: int = 2
    members: int = 3
    tuned: int = 2
    nets_alone: VerifierSettings = field(
        default_factory=lambda: VerifierSettings(
            epochs=2, learning_rate=1e-3, upper_rate=0.0
        )
    )
    settings: VerifierSettings = field(default_factory=VerifierSettings)
    by_tokens: VerifierSettings = field(
        default_factory=lambda: VerifierSettings(
            epochs=3, batch=48, group=10, learning_rate=7e-4, weight_decay=0.0
        )
    )
    cross: VerifierSettings = field(
        default_factory=lambda: VerifierSettings(
            epochs=0.3, batch=24, group=6, learning_rate=5e-4, upper_rate=4e-4,
            weight_decay=0.01, warm_up=0.06, left_out=0.25,
        )
    )  # fmt: skip
    exchanged: float = 0.3
    begin_from: Path | None = None


def train_verifier(
    training: VerifierTraining,
    public: Sequence[KnowledgeSet],
    desks: Sequence[KnowledgeSet],
    output: Path,
    *,
    on_progress: OnProgress,
) -> VerifierCard:
    """Fit a verifier on public sets and on support desks, and write its files."""
    seed = training.settings.seed
    own = {each.name for each in desks}
    held_out = [e for e in (*public, *desks) if e.name in training.held_out]
    if missing := set(training.held_out) - {each.name for each in held_out}:
        raise TrainingDataError(
            f"There is no knowledge set {', '.join(sorted(missing))} to hold out."
        )
    sets = [each for each in (*public, *desks) if each not in held_out]
    reader = Reader(base_directory(), left_off=training.tuned)
    chance = random.Random(seed)  # noqa: S311  # a sample, nothing secret
    every: list[Example] = []
    examples: list[Example] = []
    for number, each in enumerate(sets):
        on_progress(f"Reading {each.name}", number, len(sets))
        limit = training.limits.get(each.name, len(each.questions))
        share = 0.0 if each.name in own else training.exchanged
        made = examples_of(each, reader, seed, limit, share)
        every += made
        if each.name in own:
            examples += made * training.repeats
        else:
            examples += chance.sample(made, round(training.share * len(made)))
    network, cross, phases = _begun(training, reader, examples)
    for what, settings in phases:
        fit_verifier(
            network, examples, settings, on_step=partial(on_progress, f"Fitting {what}")
        )
    fit_late_interaction(
        network,
        examples,
        replace(training.by_tokens, seed=seed),
        on_step=partial(on_progress, "Fitting the comparison by tokens"),
    )
    if training.cross.epochs:
        joint = _new_or_earlier(reader, cross, seed)
        fit_cross_encoder(
            joint,
            every,
            replace(training.cross, seed=seed),
            on_step=partial(on_progress, "Fitting the cross-encoder"),
        )
        cross = joint.kept()
    card = VerifierCard(
        base_sha256=reader.sha256,
        members=len(network.members.members),
        tuned=training.tuned,
        encoder_sha256=encoder_in_use()[1] if cross else "",
        data_sha256=_digest([*sets, *held_out]),
        sources={
            each.name: {"questions": len(each.questions), "licence": each.licence}
            for each in sets
        },
        settings={
            **asdict(training.settings),
            "share": training.share,
            "repeats": training.repeats,
            "articles": list(training.articles),
            "phases": [what for what, _ in phases],
            "by_tokens": asdict(training.by_tokens),
            "cross_encoder": asdict(training.cross),
            "exchanged": training.exchanged,
            "begun_from": _fingerprint(training.begin_from),
        },
    )
    return save_calibrated(
        output, network, cross, card, held_out, on_progress=on_progress
    )


def save_calibrated(
    output: Path,
    network: Tuned,
    cross: Mapping[str, torch.Tensor],
    card: VerifierCard,
    held_out: Sequence[KnowledgeSet],
    *,
    on_progress: OnProgress,
) -> VerifierCard:
    """Calibrate the probabilities of a fitted verifier, and write its files.

    Args:
        cross: The weights of the cross-encoder that are kept; empty without one.
    """
    layers = network.upper
    reader = Reader(base_directory(), left_off=len(layers), upper=layers)
    joint = CrossEncoder.in_use(encoder_in_use()[0], reader, cross) if cross else None
    verifier = Verifier(reader, network, card, joint)
    found, metrics = calibrate_verifier(verifier, held_out, on_progress=on_progress)
    calibrated = replace(card, calibration=found, metrics=metrics)
    return save_verifier(output, network, calibrated, cross)


def _new_or_earlier(
    reader: Reader, kept: Mapping[str, torch.Tensor], seed: int
) -> CrossEncoder:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return CrossEncoder.to_fit(encoder_in_use()[0], reader, kept)


def _fingerprint(directory: Path | None) -> str:
    return "" if directory is None else read_card(directory).fingerprint


def _begun(
    training: VerifierTraining, reader: Reader, examples: Sequence[Example]
) -> tuple[Tuned, dict[str, torch.Tensor], list[tuple[str, VerifierSettings]]]:
    """Return the network to fit, an earlier cross-encoder's weights, and the phases."""
    upper = upper_layers(base_directory(), training.tuned)
    if training.begin_from is not None:
        card, earlier, cross = load_network(training.begin_from)
        if card.tuned > training.tuned:
            raise TrainingDataError(
                f"The verifier in {training.begin_from} has {card.tuned} tuned layers: "
                f"fit at least as many, not {training.tuned}."
            )
        kept = upper[: training.tuned - card.tuned]
        layers = nn.ModuleList([*kept, *earlier.upper])
        network = Tuned(layers, earlier.members, earlier.late_interaction)
        return network, cross, [("all", training.settings)]
    shown = {id(e): e for x in examples for e in (*x.positives, *x.negatives)}
    with torch.random.fork_rng():
        torch.manual_seed(training.settings.seed)
        nets = [
            Interaction(reader.width, reader.vocabulary)
            for _ in range(training.members)
        ]
    for net in nets:
        set_weights(net, [*shown.values()])
    alone = replace(training.nets_alone, seed=training.settings.seed)
    network = Tuned(upper, Members(nets), LateInteraction(reader.width))
    return network, {}, [("the nets", alone), ("all", training.settings)]


def read_public(training: VerifierTraining) -> list[KnowledgeSet]:
    seed, below = training.settings.seed, training.data
    facts, pairs = read_qamr(
        find(below, "qamr_wiki_sentences.tsv"),
        [find(below, f"qamr_filtered_{part}.tsv") for part in ("dev", "test")],
        seed=seed,
    )
    by_sentence = [
        read_squad(
            find(below, "squadshifts_new_wiki.json"),
            name="new_wiki",
            licence="texts CC BY-SA",
        ),
        read_squad(
            find(below, _ARTICLES_OF_SQUAD2),
            name="squad2",
            licence="CC BY-SA 4.0",
            articles=training.articles,
        ),
        read_natural_questions(
            find(below, "qed-dev.jsonlines"),
            [
                find(below, f"clapnq_dev_{kind}.jsonl")
                for kind in ("answerable", "unanswerable")
            ],
        ),
    ]
    return [
        *by_sentence,
        *(in_paragraphs(each, seed=seed) for each in by_sentence),
        read_squad_train(
            find(below, "squad_train_800_contexts.json"),
            find(below, "squad_train_10k_question_sentence.json"),
            find(below, "SQuAD2_CR_20191127.zip"),
            limit=training.unanswerable,
            seed=seed,
        ),
        read_selqa(find(below, "selqa_ass_dev.json")),
        facts,
        pairs,
        read_banking77(find(below, "banking77_train.csv")),
        read_acid(below, seed=seed),
        *read_stack_faq(find(below, "stackExchange-FAQ.json")),
        read_covid_faq(find(below, "covid_faq.json")),
        *(each for each in read_hint3(below) if each.name != HELD_OUT_DESK),
    ]


def _digest(sets: Sequence[KnowledgeSet]) -> str:
    digest = hashlib.sha256()
    for each in sets:
        for row in each.questions:
            digest.update(
                f"{each.name}\0{row.text}\0{sorted(row.answered_by)}".encode()
            )
    return digest.hexdigest()
