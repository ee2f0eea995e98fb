"""Compare how fast inference engines embed one question.

    python -m benchmarks.embedder_engines [--rounds 12]

Runs the bundled model with one thread on questions of 5 to 40 tokens: the product's own
encoder, torch alone (`encode_query`), torch with packed weights but without the encoder
for questions, and the other installed engines behind the modules of
sentence-transformers. Nescio does not depend on these engines; install them into a
separate environment:

    pip install -c requirements.txt onnxruntime onnx openvino nncf

Each question is embedded by all engines in random order, one right after the other. The
ratio is the median of the per-question ratios to the product's encoder. The exit status
is 1 if that encoder is no longer worth having: an engine with the same distances takes
less than `MIN_RATIO` of its time, or torch alone takes less than `MIN_GAIN` times as
long.
"""

import argparse
import importlib
import importlib.util
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

MIN_RATIO = 0.90
MIN_GAIN = 1.25
MAX_APART = 1e-4  # of a distance; beyond it the embeddings count as different

Embed = Callable[[str], np.ndarray]
Infer = Callable[[Sequence[np.ndarray]], np.ndarray]

_OURS = "today"
_ALONE = "torch alone"
_WARM_UP = 3
_INPUTS = ("input_ids", "attention_mask", "token_type_ids")
_HEADS = (
    "Which fee?",
    "What does a replacement card cost?",
    "How many moons of Jupiter were described before the year 1610?",
)
_TAILS = (
    "",
    "In Norway?",
    "I was at the airport.",
    "I am abroad, and the bank wrote to me that it would be free.",
    "Who pays for the courier if nobody is at home on the day when it comes, and is there a second try?",
)
_ENTRIES = tuple(
    f"For the {card} card a {thing} {place} costs {number} euros."
    for number, (card, thing, place) in enumerate(
        (card, thing, place)
        for card in ("Classic", "Gold", "Student")
        for thing in ("replacement card", "cash withdrawal", "late payment")
        for place in ("in Norway", "at the airport", "online")
    )
)


def main() -> int:
    """Measure and print; return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--rounds", type=int, default=12)
    rounds = parser.parse_args().rounds
    os.environ |= {
        "DJANGO_SETTINGS_MODULE": "nescio.settings",
        "NESCIO_TORCH_THREADS": "1",
        "OMP_NUM_THREADS": "1",
        "TOKENIZERS_PARALLELISM": "false",
    }
    import django

    django.setup()
    from kb.embedding.embedder import load_embedder

    embedder = load_embedder("bundled")  # also sets torch's number of threads
    with tempfile.TemporaryDirectory(prefix="nescio-engines-") as directory:
        ways: dict[str, Embed] = {
            _OURS: embedder.encode_question,
            _ALONE: _library(_model()),
            "torch, packed": _packed(),
            **dict(_engines(Path(directory))),
        }
        questions = [f"{head} {tail}".strip() for head in _HEADS for tail in _TAILS]
        times = _measure(ways, questions, rounds)
        apart = _apart(ways, questions)
    return _report(times, apart)


def _model() -> "SentenceTransformer":
    from sentence_transformers import SentenceTransformer

    from kb.embedding.embedder import bundled_directory

    directory = str(bundled_directory())
    return SentenceTransformer(directory, device="cpu", local_files_only=True).eval()


def _library(model: "SentenceTransformer") -> Embed:
    def embed(question: str) -> np.ndarray:
        found = model.encode_query(
            question, show_progress_bar=False, normalize_embeddings=True
        )
        return np.asarray(found)

    return embed


def _modules(model: "SentenceTransformer") -> Embed:
    """Call the model's modules directly, without the overhead of `encode_query`."""
    import torch

    def embed(question: str) -> np.ndarray:
        with torch.inference_mode():
            tokens = model.preprocess([question], task="query")
            vector = model(tokens, task="query")["sentence_embedding"][0].numpy()
        return np.asarray(vector / np.linalg.norm(vector))

    return embed


def _packed() -> Embed:
    from kb.embedding.short_texts import pack

    model = _model()
    pack(model)
    return _modules(model)


def _engines(directory: Path) -> Iterator[tuple[str, Embed]]:
    """Yield the name and embedding function of each other installed engine."""
    if _has("onnxruntime", "onnx"):
        exact, small = directory / "exact.onnx", directory / "int8.onnx"
        _export_onnx(exact)
        yield "onnxruntime", _behind_modules(_onnx(exact))
        quantization = importlib.import_module("onnxruntime.quantization")
        quantization.quantize_dynamic(exact, small, per_channel=True)
        yield "onnxruntime int8", _behind_modules(_onnx(small))
    if _has("openvino"):
        yield "openvino", _behind_modules(_openvino(_converted()))
        if _has("nncf"):
            nncf = importlib.import_module("nncf")
            small_one = nncf.compress_weights(
                _converted(), mode=nncf.CompressWeightsMode.INT8_ASYM
            )
            yield "openvino int8", _behind_modules(_openvino(small_one))


def _has(*packages: str) -> bool:
    missing = [each for each in packages if importlib.util.find_spec(each) is None]
    if missing:
        print(f"not installed, skipped: {', '.join(missing)}")
    return not missing


def _traceable() -> tuple[Any, tuple[Any, ...]]:
    """Return the transformer as a module of three inputs, and example inputs."""
    import torch

    model = _model()
    transformer: Any = model[0].auto_model

    class Hidden(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.transformer = transformer

        def forward(self, *inputs: torch.Tensor) -> Any:
            given = dict(zip(_INPUTS, inputs, strict=True))
            return self.transformer(**given).last_hidden_state

    example = model.preprocess(["How much is a card?", "Fee?"])
    return Hidden().eval(), tuple(example[name] for name in _INPUTS)


def _export_onnx(file: Path) -> None:
    import torch

    traceable, example = _traceable()
    torch.onnx.export(
        traceable,
        example,
        str(file),
        dynamo=False,  # takes a sixth of the time, and supports T5's encoder too
        input_names=list(_INPUTS),
        output_names=["hidden"],
        dynamic_axes={name: {0: "texts", 1: "tokens"} for name in (*_INPUTS, "hidden")},
    )


def _onnx(file: Path) -> Infer:
    runtime = importlib.import_module("onnxruntime")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = runtime.InferenceSession(
        str(file), options, providers=["CPUExecutionProvider"]
    )

    def infer(inputs: Sequence[np.ndarray]) -> np.ndarray:
        given = dict(zip(_INPUTS, inputs, strict=True))
        return np.asarray(session.run(None, given)[0])

    return infer


def _converted() -> Any:
    traceable, example = _traceable()
    return importlib.import_module("openvino").convert_model(
        traceable, example_input=example
    )


def _openvino(model: Any) -> Infer:
    compiled = importlib.import_module("openvino").compile_model(
        model,
        "CPU",
        {
            "INFERENCE_NUM_THREADS": 1,
            "NUM_STREAMS": 1,
            "INFERENCE_PRECISION_HINT": "f32",  # the default is bfloat16 if supported
        },
    )
    request = compiled.create_infer_request()

    def infer(inputs: Sequence[np.ndarray]) -> np.ndarray:
        request.infer(list(inputs), share_inputs=True)
        return np.array(request.get_output_tensor(0).data)

    return infer


def _behind_modules(infer: Infer) -> Embed:
    """Embed by sentence-transformers' modules, with the engine as the transformer."""
    import torch
    from transformers.modeling_outputs import BaseModelOutput

    model = _model()
    part: Any = model[0]

    class Engine(torch.nn.Module):
        config = part.auto_model.config

        def forward(self, **given: torch.Tensor) -> BaseModelOutput:
            hidden = infer([given[name].numpy() for name in _INPUTS])
            found: Any = torch.from_numpy(hidden)
            return BaseModelOutput(last_hidden_state=found)

    part.model = Engine()
    return _modules(model)


def _measure(
    ways: Mapping[str, Embed], questions: Sequence[str], rounds: int
) -> dict[str, list[float]]:
    rng = random.Random(7)
    times: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(_WARM_UP + rounds):
        for question in questions:
            for name in rng.sample(list(ways), len(ways)):
                begun = time.perf_counter()
                ways[name](question)
                if turn >= _WARM_UP:
                    times[name].append((time.perf_counter() - begun) * 1000)
    return times


def _apart(ways: Mapping[str, Embed], questions: Sequence[str]) -> dict[str, float]:
    """Return for each way the largest difference of its distances from torch alone."""
    entries = np.stack([ways[_ALONE](entry) for entry in _ENTRIES])
    distances = {
        name: np.stack(
            [np.linalg.norm(entries - embed(each), axis=1) for each in questions]
        )
        for name, embed in ways.items()
    }
    alone = distances[_ALONE]
    return {name: float(np.abs(each - alone).max()) for name, each in distances.items()}


def _report(times: Mapping[str, Sequence[float]], apart: Mapping[str, float]) -> int:
    ratios = {
        name: statistics.median(
            one / ours for one, ours in zip(each, times[_OURS], strict=True)
        )
        for name, each in times.items()
    }
    print(f"{'engine':20}{'p50 ms':>9}{'p95 ms':>9}{'ratio':>8}{'apart':>10}")
    for name, each in times.items():
        p95 = sorted(each)[int(0.95 * (len(each) - 1))]
        print(
            f"{name:20}{statistics.median(each):>9.2f}{p95:>9.2f}"
            f"{ratios[name]:>8.2f}{apart[name]:>10.1e}"
        )
    exact = {
        name: ratio
        for name, ratio in ratios.items()
        if name != _OURS and apart[name] <= MAX_APART
    }
    best = min(exact, key=lambda name: exact[name])
    checks = (
        (f"best with our distances ({best})", exact[best], MIN_RATIO),
        (_ALONE, ratios[_ALONE], MIN_GAIN),
    )
    for what, ratio, least in checks:
        verdict = "ok" if ratio >= least else "UNDER"
        print(f"{what:48}{ratio:>6.2f}   minimum {least:.2f}   {verdict}")
    is_same = apart[_OURS] <= MAX_APART
    return int(not is_same or any(ratio < least for _, ratio, least in checks))


if __name__ == "__main__":
    sys.exit(main())
