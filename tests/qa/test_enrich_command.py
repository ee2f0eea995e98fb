"""`manage.py enrich` with the real bundled model, end to end."""

from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from kb.models import Entry, Proposal
from qa.inference.configured import load_writer
from tests.factories import make_audience, make_knowledge_base

pytestmark = [pytest.mark.django_db, pytest.mark.slow]


@pytest.fixture
def seeds(tmp_path):
    make_knowledge_base()
    make_audience()
    file = tmp_path / "seeds.txt"
    file.write_text("What is the capital of France?\n\nHow many legs has a spider?\n")
    return file


def run(*arguments):
    out = StringIO()
    call_command("enrich", *arguments, stdout=out, stderr=StringIO(), no_color=True)
    return out.getvalue()


def test_the_bundled_model_proposes_and_verifies_nothing(seeds):
    printed = run("--seeds", str(seeds), "--per-seed", "0")

    made = list(Proposal.objects.order_by("pk"))
    assert 1 <= len(made) <= 2
    assert {entry.state for entry in Entry.objects.all()} == {"proposed"}
    writer = load_writer()
    for proposal in made:
        assert proposal.sentence in printed
        assert proposal.model_fingerprint == writer.fingerprint
        assert 0 <= proposal.agreement <= 1
        assert 0 < (proposal.likelihood or 0) <= 1
        assert 0 < proposal.confidence <= 0.6
    assert f"{len(made)} proposed from 2 of 2 seeds" in printed


def test_run_again_it_proposes_nothing_twice(seeds):
    run("--seeds", str(seeds), "--per-seed", "0")
    made = Proposal.objects.count()

    printed = run("--seeds", str(seeds), "--per-seed", "0")

    assert Proposal.objects.count() == made
    assert "0 proposed" in printed


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--seeds", "nowhere.txt"], "nowhere.txt can't be read"),
        (["--audience", "board"], "no audience 'board'"),
        (["--per-seed", "99"], "per_seed 99"),
        (["--knowledge-base", "moon"], "moon"),
    ],
)
def test_what_is_missing_or_wrong_is_told(seeds, arguments, said):
    given = arguments if "--seeds" in arguments else ["--seeds", str(seeds), *arguments]

    with pytest.raises(CommandError, match=said) as caught:
        run(*given)

    assert caught.value.returncode == 2
