"""A small data set laid out as SQuAD 2.0: twelve articles of facts about made-up things."""

import json
from pathlib import Path


def write_squad(directory: Path, articles: int = 12) -> Path:
    """Write it; each article says ten things and asks for each."""
    data = []
    for number in range(articles):
        facts = [(f"thing{number}x{n}", f"place{number}x{n}") for n in range(10)]
        context = " ".join(f"The {what} lies in {where}." for what, where in facts)
        asked = [
            {
                "id": f"{number}-{n}",
                "question": f"Where does the {what} lie?",
                "answers": [{"text": where, "answer_start": 0}],
                "is_impossible": False,
            }
            for n, (what, where) in enumerate(facts)
        ]
        nobody = {"id": f"{number}-x", "question": "Why?", "answers": [],
                  "is_impossible": True}  # fmt: skip
        paragraph = {"context": context, "qas": [*asked, nobody]}
        data.append({"title": f"Article_{number}", "paragraphs": [paragraph]})
    file = directory / "squad-v2-small.json"
    file.write_text(json.dumps({"data": data}), encoding="utf-8")
    return file
