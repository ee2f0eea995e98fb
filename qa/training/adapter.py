"""Training the adapter: from labelled questions to files that a model is loaded with."""

import hashlib
import json
import logging
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import torch
from django.conf import settings

from probes.adapter.card import AdapterCard
from probes.adapter.examples import Example
from probes.adapter.fitting import AdapterSettings, Step, fit_adapter
from probes.adapter.saving import save_adapter
from probes.language_model.hardware import choose_device, choose_dtype
from probes.language_model.loading import directory_of, load_network, weights_sha256
from qa.evaluation.suites.squad2 import open_squad2
from qa.language_models.grounded_prompt import FORM

from .adapter_examples import Lessoned, balanced, read_lessons, with_notes

logger = logging.getLogger(__name__)

OnProgress = Callable[[str, int, int], None]
"""Told what is done, how much of it, of how much, and the loss where there is one."""


@dataclass(frozen=True, slots=True)
class AdapterTraining:
    """What an adapter is trained on and how.

    Attributes:
        data: A file like SQuAD 2.0, its directory, or a directory of data sets.
        articles: Those that it may learn from; empty for all.
        exclude_articles: Those that it may not.
        answerable: Share in (0, 1) of the examples whose notes answer the question.
        limit: The most examples; None for all.
        threads: Of the processor, for fitting alone.
    """

    data: Path | None
    articles: tuple[str, ...] = ()
    exclude_articles: tuple[str, ...] = ()
    answerable: float = 0.5
    limit: int | None = None
    threads: int = 1
    settings: AdapterSettings = field(default_factory=AdapterSettings)


def train_adapter(
    model: str, training: AdapterTraining, output: Path, *, on_progress: OnProgress
) -> AdapterCard:
    """Fit an adapter to the language model of that name and write its files.

    Raises:
        EvaluationDataError: The data is missing or laid out otherwise.
        TooFewLabelsError: There is too little to learn from.
        ModelError: The language model's files cannot be used as they are.
        ModelLoadError: The language model is not there, or cannot be fetched.
    """
    lessons = lessons_of(training, on_progress)
    directory = directory_of(model)
    device = choose_device(settings.MODEL_DEVICE)
    network, tokens = load_network(directory, name=model, dtype=choose_dtype(device))
    network.to(device)  # type: ignore[arg-type]  # a decorator hides the real signature
    examples = [lesson.example(tokens) for lesson in lessons]
    losses: list[float] = []
    # Only now: whatever was loaded to look notes up has set its own number.
    torch.set_num_threads(training.threads)

    def stepped(step: Step) -> None:
        losses.append(step.loss)
        on_progress("Fitting", step.number, step.total)

    adapted = fit_adapter(network, examples, training.settings, on_step=stepped)
    return save_adapter(
        output,
        adapted,
        AdapterCard(
            base=model,
            base_sha256=weights_sha256(directory),
            form=FORM,
            data_sha256=_digest(examples),
            groups=tuple(sorted({lesson.article for lesson in lessons})),
            settings=asdict(training.settings),
            metrics={
                "examples": len(examples),
                "answerable": sum(bool(lesson.answer) for lesson in lessons),
                "last_loss": sum(losses[-50:]) / len(losses[-50:]),
            },
        ),
    )


def lessons_of(training: AdapterTraining, on_progress: OnProgress) -> list[Lessoned]:
    """Return what an adapter is fitted on, with the notes that the retriever found.

    Raises:
        EvaluationDataError: The data is missing or laid out otherwise.
    """
    suite = open_squad2(
        data=training.data,
        articles=training.articles,
        exclude_articles=training.exclude_articles,
        loading=lambda done, total: on_progress("Loading knowledge", done, total),
    )
    if suite.knowledge_base is None or suite.policy is None:
        msg = "squad2 is asked of a knowledge base, by a policy"
        raise TypeError(msg)
    lessons = read_lessons(training.data, training.articles, training.exclude_articles)
    found: list[Lessoned] = []
    rows = with_notes(
        lessons,
        suite.knowledge_base,
        suite.policy.as_value(),
        seed=training.settings.seed,
    )
    for number, row in enumerate(rows, start=1):
        found += [row] if row else []
        on_progress("Looking up notes", number, len(lessons))
    chosen = balanced(
        found, answerable=training.answerable, seed=training.settings.seed
    )
    logger.info(
        "%d of %d questions make examples on %d articles, %s",
        len(chosen), len(lessons), len({row.article for row in chosen}),
        dict(Counter("answerable" if row.answer else "not" for row in chosen)),
    )  # fmt: skip
    return chosen[: training.limit]


def _digest(examples: Sequence[Example]) -> str:
    rows = [[example.prompt, example.answer] for example in examples]
    return hashlib.sha256(json.dumps(rows).encode()).hexdigest()
