"""Small probes of made-up answers, as files."""

from dataclasses import replace

import numpy as np

from probes.abstention.files import probe_files
from probes.abstention.fitting import FitSettings, fit
from probes.abstention.probe import Kind, Labelled
from probes.cards import ProbeCard, ProbeFiles, ProbeKind
from probes.joint import JointSettings, fit_joint, joint_files
from probes.reranker.blend import Blend, blend_files
from probes.taps import Part, Tap

MODEL = "a" * 64
_CARD = ProbeCard(
    kind=ProbeKind.ABSTENTION,
    language_model="",
    language_model_name="tiny",
    form="grounded-1",
    layer=None,
    part="",
    temperature=1.0,
    data_sha256="d" * 64,
    sizes={"answers": 160, "groups": 8},
    settings={},
    metrics={},
)


def activation_files(
    kind=ProbeKind.ABSTENTION,
    *,
    language_model=MODEL,
    layer=1,
    part="block",
    width=32,
    seed=0,
    network=Kind.LINEAR,
    metrics=None,
    form="grounded-1",
    opens_with_prompt=True,
    closes_with_end=False,
) -> ProbeFiles:
    """Return a probe of activations in which right answers lie a little higher."""
    is_early = kind is ProbeKind.EARLY
    settings = FitSettings(
        kind=network, hidden=4, projected=4, epochs=2, seed=seed,
        opens_with_prompt=opens_with_prompt and not is_early,
        closes_with_end=closes_with_end,
    )  # fmt: skip
    random = np.random.default_rng(seed)
    length = 1 if is_early else 3
    rows = []
    for index in range(160):
        values = random.normal(size=(length, width)) + (index % 2)
        rows.append(Labelled(values.astype(np.float32), index % 2 == 1))
    made = fit(
        rows[:110],
        rows[110:],
        language_model=language_model,
        tap=Tap(layer, Part(part)),
        settings=settings,
    )
    card = replace(_CARD, kind=kind, form=form, metrics=metrics or {})
    return probe_files(made, settings, card)


def joint_probe_files(
    *, language_model=MODEL, signals=("verdict_probability",), inputs=None
) -> ProbeFiles:
    """Return a joint probe that trusts every one of its signals alike."""
    settings = JointSettings(tuple(signals))
    random = np.random.default_rng(0)
    rows = [{name: float(random.uniform()) for name in signals} for _ in range(400)]
    right = [random.uniform() < np.mean(list(row.values())) for row in rows]
    made = fit_joint(
        rows,
        [bool(one) for one in right],
        language_model=language_model,
        settings=settings,
        inputs=inputs,
    )
    return joint_files(made, settings, replace(_CARD, kind=ProbeKind.JOINT, form=""))


def reranker_files(logit=1.0, *, before=0.5, after=0.6) -> ProbeFiles:
    """Return a reranker with that recall before and after it."""
    metrics = {"recall_before": before, "recall_after": after}
    card = replace(reranker_card(), metrics=metrics)
    return blend_files(Blend(logit, 0.0, 1.0), card)


def reranker_card() -> ProbeCard:
    return replace(_CARD, kind=ProbeKind.RERANKER, language_model=MODEL, form="")
