"""Past questions decide whether the model answers by itself, and stay where they are."""

from dataclasses import dataclass, field

import pytest
from django.urls import reverse

from accounts.roles import Role
from nescio.warm_up import prepare_policies
from qa.answers.asking import ask
from qa.inference.by_history import HistoryForm, SelfKnowledgeByHistory
from qa.inference.closed_book_form import ClosedBookForm, SelfKnowledgeByDraft
from qa.inference.configured import load_language_model
from qa.inference.label_judge import LabelPair
from qa.inference.policy_models import load_closed_book_form
from qa.models import PastQuestion
from qa.pipeline.history import KnownQuestion
from qa.pipeline.policy import RetrievalTiming, Scope
from qa.pipeline.values import Question
from qa.policies.services import ensure_default_policy, new_version
from tests.clients import rest_client
from tests.factories import make_entry, make_knowledge_base, make_user, put_in_force
from tests.probes import tiny_models
from tests.qa.training.reviewed import judge, make_draft
from tests.qa.training.test_past_knowledge import kept

pytestmark = pytest.mark.slow

ASKED = Question("Where is Athens?")
PAST = (
    KnownQuestion("Where is Rome?", True, "near"),
    KnownQuestion("Who lives next door?", False, "far"),
)
SECRET = "What is the capital of France, asked Agent Quill?"


@dataclass
class GivenHistory:
    """Has these past questions, and keeps how it was asked for them."""

    past: tuple[KnownQuestion, ...] = PAST
    asked: list[tuple[str, str]] = field(default_factory=list)

    def known(self, question, *, own_model, limit):
        self.asked.append((question.text, own_model))
        return self.past[:limit]

    def judged(self, question, *, language_model, limit):
        raise AssertionError("nobody asked for verdicts")


@pytest.fixture(scope="module")
def forms():
    model = tiny_models.model("llama", context_length=8192)
    return ClosedBookForm(model), HistoryForm(model, LabelPair("A", "B"))


def test_the_known_probability_is_the_corrected_probability_of_known(forms):
    own, asking = forms

    found = SelfKnowledgeByHistory(own, asking, GivenHistory()).consider(ASKED)

    expected = asking.judge(ASKED.text, PAST)
    told = dict(found.signals)
    assert found.known_probability == told["history_known"] == expected.known
    assert told["history_uncorrected"] == expected.uncorrected
    assert told["history_known_share"] == 0.5
    assert found.examples == ("near", "far")


def test_without_a_history_the_examples_that_come_along_decide(forms):
    own, asking = forms

    found = SelfKnowledgeByHistory(own, asking, GivenHistory(())).consider(ASKED)

    assert found.known_probability == asking.judge(ASKED.text).known
    assert found.examples == ()
    assert dict(found.signals)["history_known_share"] is None


def test_what_changes_is_never_known(forms):
    own, asking = forms
    question = Question("Who is the current mayor of Athens?")

    found = SelfKnowledgeByHistory(own, asking, GivenHistory()).consider(question)

    assert found.known_probability == 0.0
    assert found.judgement.known > 0


def test_history_is_asked_for_the_very_form_that_will_answer(forms):
    own, asking = forms
    history = GivenHistory()

    SelfKnowledgeByHistory(own, asking, history).consider(ASKED)

    assert history.asked == [(ASKED.text, own.fingerprint)]


def test_the_answer_is_written_without_any_past_question(forms):
    own, asking = forms

    answer = (
        SelfKnowledgeByHistory(own, asking, GivenHistory()).consider(ASKED).answer()
    )

    alone = SelfKnowledgeByDraft(own).consider(ASKED).answer()
    assert (answer.raw, answer.prompt_tokens) == (alone.raw, alone.prompt_tokens)


def test_deciding_takes_one_pass_over_the_prompt(forms):
    own, asking = forms
    decider = SelfKnowledgeByHistory(own, asking, GivenHistory())
    decider.consider(ASKED)  # reads the fixed prefix

    with own.model.metered() as meter:
        decider.consider(ASKED)

    assert (meter.prompt_passes, meter.steps) == (1, 0)


@pytest.mark.django_db
def test_another_asker_s_past_question_is_used_and_never_shown(client, bundled_base):
    policy = new_version(
        ensure_default_policy(make_knowledge_base()),
        by=None,
        scope=Scope.ADAPTIVE,
        retrieval_timing=RetrievalTiming.HISTORY,
        min_known=0.0,
    )
    put_in_force(policy)
    past = make_draft(make_entry(), question=SECRET)
    past.generation = {"answer": "Paris", "short_answer": "Paris"}
    past.save()
    judge(past, is_right=True)
    kept()
    agent = make_user(Role.AGENT)
    client.force_login(agent)
    rest = rest_client(agent)

    answer = ask("What is the capital of France?", asker=agent, channel="api")

    assert answer.is_unsourced
    assert answer.boundary["examples"] == [str(past.pk)]
    assert answer.policy == policy
    shown = (
        rest.get(f"/api/v1/answers/{answer.pk}").content.decode()
        + client.get(reverse("answer", args=[answer.pk])).content.decode()
    )
    assert "Quill" not in shown
    assert "Quill" not in str(answer.generation)
    assert str(past.pk) not in shown


@pytest.mark.django_db
def test_past_verdicts_of_the_same_model_correct_its_own(bundled_model, bundled_base):
    entry = make_entry("A replacement card costs 12 euros.")
    for model in (load_language_model().fingerprint, "another"):
        past = make_draft(entry, question="What is a new card's fee?")
        past.language_model = model
        past.save()
        judge(past, is_right=True)
    kept()
    first = ensure_default_policy(make_knowledge_base())
    put_in_force(new_version(first, by=None, debias_verdict=True))

    answer = ask("How much is a replacement card?", asker=make_user(), channel="api")

    told = {signal["name"]: signal["value"] for signal in answer.signals}
    assert told["verdict_probability"] == told["debiased_verdict"]
    assert {"own_verdict", "uncorrected_verdict"} < set(told)
    own = PastQuestion.objects.exclude(language_model="another").get()
    assert [*answer.generation["debiased"]["examples"]] == [str(own.pk)]


@pytest.mark.django_db
def test_the_bundled_model_is_asked_in_the_labels_of_the_setting(
    settings, bundled_base
):
    from qa.inference.policy_models import history_form

    settings.HISTORY_LABELS = "yes/no"
    one = history_form()
    settings.HISTORY_LABELS = "A/B"
    other = history_form()

    assert one.fingerprint != other.fingerprint
    assert load_closed_book_form().fingerprint not in (
        one.fingerprint,
        other.fingerprint,
    )


@pytest.mark.django_db
@pytest.mark.parametrize(
    "wanted",
    [
        {"debias_verdict": True},
        {"scope": Scope.ADAPTIVE, "retrieval_timing": RetrievalTiming.HISTORY},
    ],
)
def test_labels_that_the_model_does_not_know_whole_are_told_at_start(
    settings, bundled_base, wanted, caplog
):
    settings.HISTORY_LABELS = "incontrovertible/antediluvian"
    first = ensure_default_policy(make_knowledge_base())
    prepare_policies()  # none of which needs labels yet
    assert not caplog.records
    put_in_force(new_version(first, by=None, **wanted))

    prepare_policies()

    assert "which cannot be used" in caplog.messages[0]
    assert "incontrovertible/antediluvian" in caplog.text
