"""OpenAI's protocol by a real chat front end: Simon Willison's `llm`, on the command line."""

import os
import subprocess
import sys

import pytest

from accounts.services import create_token
from qa.models import Answer
from tests.factories import make_entry, make_user

pytestmark = pytest.mark.slow

FEE = "What does a replacement card cost?"
FAR = "Who won the cup in 1974?"
TEXT = "It costs 12 euros."
MODELS = """
- model_id: nescio
  model_name: cards
  api_base: {url}/v1
  api_key_name: nescio
"""


@pytest.fixture
def llm(transactional_db, live_server, tmp_path):
    """Run the front end as a person who followed our how-to."""
    make_entry(TEXT, question=FEE)
    (tmp_path / "extra-openai-models.yaml").write_text(
        MODELS.format(url=live_server.url)
    )
    token = create_token(user=make_user()).secret

    # Whatever plugins of its own are installed stay out: a wheel of a model brings one.
    own = {"LLM_USER_PATH": str(tmp_path), "LLM_LOAD_PLUGINS": ""}

    def run(*arguments, said=""):
        done = subprocess.run(
            [sys.executable, "-m", "llm", *arguments, "--key", token],
            env={**os.environ, **own},
            input=said,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


@pytest.mark.parametrize("streams", [True, False])
def test_the_front_end_shows_an_answer_and_a_refusal(llm, streams):
    options = () if streams else ("--no-stream",)

    assert llm("-m", "nescio", FEE, *options).strip() == TEXT
    refused = llm("-m", "nescio", FAR, *options)

    answer, refusal = Answer.objects.order_by("created_at")
    assert refused.strip() == refusal.text
    assert (answer.outcome, refusal.outcome) == ("answered", "refused")


def test_a_chat_asks_each_turn_once_within_its_conversation(llm):
    shown = llm("chat", "-m", "nescio", said=f"{FEE}\n{FAR}\nexit\n")

    assert TEXT in shown
    questions = Answer.objects.order_by("created_at").values_list("question", flat=True)
    assert list(questions) == [FEE, FAR]
