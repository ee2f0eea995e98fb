"""What engine embeds one question fastest, side by side in one run.

    python -m benchmarks.embedder_engines [--rounds 12]

The bundled model, one thread, on questions of 5 to 40 tokens: our own way, torch alone
(`encode_query`), torch with packed weights but without the encoder for questions, and the
engines that are installed, behind sentence-transformers' own modules. They are no packages
of Nescio's; into an environment of its own:

    pip install -c requirements.txt onnxruntime onnx openvino nncf

Each question is embedded by all engines in random order, one right after the other. The
ratio is the median of the questions' own ratios to our way. The exit status is 1 where our
way no longer earns its place: an engine with the same distances takes less than
`MIN_RATIO` of its time, or torch alone less than `MIN_GAIN` times as long.
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
MAX_APART = 1e-4  # of a distance; what is further apart is another embedder

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

    embedder = load_embedder("bundled")  # sets torch's threads, too
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
    """Embed by the model's own parts, without what `encode_query` does around them."""
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
    """Yield what is installed of other engines, by name."""
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
        print(f"not installed, left out: {', '.join(missing)}")
    return not missing


def _traceable() -> tuple[Any, tuple[Any, ...]]:
    """Return the transformer from three tensors to one, and an example of the three."""
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
        dynamo=False,  # a sixth of the time, and it takes T5's encoder too
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
            "INFERENCE_PRECISION_HINT": "f32",  # bfloat16 otherwise, where there is it
        },
    )
    request = compiled.create_infer_request()

    def infer(inputs: Sequence[np.ndarray]) -> np.ndarray:
        request.infer(list(inputs), share_inputs=True)
        return np.array(request.get_output_tensor(0).data)

    return infer


def _behind_modules(infer: Infer) -> Embed:
    """Embed by sentence-transformers' modules, the engine in the transformer's place."""
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
    """Return by how much each way's distances differ at most from torch's alone."""
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
