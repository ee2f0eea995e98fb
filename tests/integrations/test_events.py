"""What happened is posted to who wants it and may see it: signed, at least once, in order."""

import json
import socket
import threading
from contextlib import contextmanager
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from django.core import mail
from django.db import connection, transaction
from django.urls import reverse
from django.utils import timezone
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from accounts.acting import acting_for
from accounts.exceptions import NotFoundError
from accounts.models import AuditEntry
from accounts.outbound import PrivateAddressError, is_public
from accounts.roles import Role
from integrations.events import delivery as deliveries
from integrations.events import posting, services
from integrations.events.models import Delivery, Endpoint, Event, EventType
from integrations.events.posting import EndpointStateError, Message, checked_url, post
from jobs.run import run_job
from jobs.services import enqueue
from kb.entries.services import edit_entry
from kb.entries.states import retire_entry
from kb.models import Conflict
from kb.sources.models import FollowedSource
from qa.calibration.models import Certificate, DriftReading
from qa.gaps.escalations import close, escalate
from qa.models import Answer, Gap, Vote
from qa.policies.models import PolicyActivation
from qa.policies.services import ensure_default_policy
from tests.clients import rest_client
from tests.factories import (
    make_audience,
    make_entry,
    make_knowledge_base,
    make_staff,
    make_user,
)
from tests.qa.answer_rows import make_answer
from workers import tasks

pytestmark = pytest.mark.django_db(transaction=True)

QUESTION = "What does a wire transfer cost?"


class Receiver:
    """An endpoint on this machine that verifies and keeps what it gets."""

    def __init__(self) -> None:
        self.statuses: list[int] = []
        self.posts: list[tuple[dict[str, str], bytes]] = []
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.posts.append((dict(self.headers), body))
                status = receiver.statuses.pop(0) if receiver.statuses else 200
                self.send_response(status)
                if status == 302:
                    self.send_header("Location", "/elsewhere")
                self.end_headers()
                self.wfile.write(b"thanks \0" + b"x" * 5_000)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/hook?a=1"
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()

    def stop(self) -> None:
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()

    def got(self) -> list[tuple[str, dict[str, Any]]]:
        return [(json.loads(b)["type"], json.loads(b)["data"]) for _, b in self.posts]


@pytest.fixture(scope="module")
def listening():
    made = Receiver()
    yield made
    made.stop()


@pytest.fixture
def receiver(settings, listening):
    settings.WEBHOOK_ALLOW_PRIVATE = True
    listening.posts.clear()
    listening.statuses.clear()
    return listening


@pytest.fixture
def owner():
    user = make_user(Role.ADMIN, username="olga")
    user.email, user.is_staff = "olga@example.org", True
    user.save()
    return user


def make_endpoint(owner, url: str, *types: str, **fields) -> Endpoint:
    wanted = list(types or EventType)
    fields = {"name": "CRM", **fields}
    return Endpoint.objects.create(owner=owner, url=url, types=wanted, **fields)


def let_time_pass() -> None:
    """Let every wait be over."""
    Delivery.objects.filter(state="pending").update(next_attempt_at=timezone.now())
    Endpoint.objects.update(not_before=None)


def let_one_be_given_up(endpoint, event: Event | None = None) -> Delivery:
    now = timezone.now()
    event = event or Event.objects.create(
        type=EventType.GAP_FILLED, data={"gap": 1}, created_at=now, routed_at=now
    )
    made = Delivery.objects.create(endpoint=endpoint, event=event, next_attempt_at=now)
    rows = Delivery.objects.filter(pk=made.pk)
    rows.update(state=Delivery.State.FAILED, next_attempt_at=None)
    return made


def let_drift() -> None:
    policy = ensure_default_policy(make_knowledge_base())
    certificate = Certificate.objects.create(
        policy=policy, method="test", epsilon=0.1, delta=0.1, labelled=1, shown=1,
        wrong=0, bound=0.1, coverage=1, labels_sha256="0", labels_source="test",
        embedder="x", retrieval="x",
    )  # fmt: skip
    for drifted in (False, True):
        DriftReading.objects.create(
            certificate=certificate, answers=9, has_drifted=drifted
        )


def test_the_reference_client_verifies_what_is_posted(owner, receiver):
    endpoint = make_endpoint(owner, receiver.url, EventType.ANSWER_REFUSED)
    refused = make_answer(make_user(), question=QUESTION)

    assert deliveries.deliver_due() == 1

    ((headers, body),) = receiver.posts
    received = Webhook(endpoint.secret).verify(body, headers)
    assert received["type"] == "answer.refused"
    assert received["data"] == {
        "knowledge_base": "cards",
        "answer": str(refused.pk),
        "reason": "too_far",
        "channel": "page",
        "language": "en",
        "link": f"http://127.0.0.1:8000/answers/{refused.pk}",
    }
    assert QUESTION not in body.decode()
    assert headers["webhook-id"] == Event.objects.get().message_id
    with pytest.raises(WebhookVerificationError):
        Webhook(endpoint.secret).verify(body + b" ", headers)
    delivery = Delivery.objects.get()
    assert (delivery.state, delivery.status, delivery.attempts) == ("delivered", 200, 1)
    assert len(delivery.response) == posting.MAX_RESPONSE_BYTES
    assert deliveries.deliver_due() == 0


def test_every_kind_of_event_comes_with_its_link(owner, receiver, settings):
    settings.PUBLIC_URL = "https://nescio.example.org"
    make_endpoint(owner, receiver.url)
    base, asker, expert = make_knowledge_base(), make_user(), make_user(Role.SME)
    policy = ensure_default_policy(base)
    soon = timezone.now() + timedelta(hours=1)
    first, second = make_entry("It costs 12 euros."), make_entry("It costs 13 euros.")
    refused = make_answer(asker, question=QUESTION)
    sent = escalate(refused.pk, user=asker)
    close(sent.pk, by=expert, reason="Ask the bank.")
    gap = Gap.objects.create(
        knowledge_base=base, question=QUESTION, vector=[1.0] * 384,
        first_seen=soon, last_seen=soon,
    )  # fmt: skip
    gap.state, gap.closed_at = Gap.State.FILLED, soon
    gap.save()
    Conflict.objects.create(
        first=first, second=second, first_revision=1, second_revision=1,
        texts_sha256="0" * 64, kind="contradiction", score=0.9, distance=0.1,
        model="test",
    )  # fmt: skip
    let_drift()
    PolicyActivation.objects.create(knowledge_base=base, policy=policy)
    job = enqueue("no.such_kind", {})
    run_job(job.pk, {})
    done = enqueue("some.kind", {}, owner=owner)
    run_job(done.pk, {"some.kind": lambda _: {}})
    run_job(enqueue("some.kind", {}).pk, {"some.kind": lambda _: {}})
    vote = Vote.objects.create(answer=refused, user=asker, is_up=False)
    type(first).objects.filter(pk=first.pk).update(
        valid_until=timezone.now() + timedelta(milliseconds=1)
    )
    source = FollowedSource.objects.create(
        name="Wiki", kind="folder", address="/x", knowledge_base=base, every_hours=1
    )
    for error in ("It is gone.", "It is still gone."):
        FollowedSource.objects.filter(pk=source.pk).update(error=error)
    let_one_be_given_up(make_endpoint(owner, receiver.url, name="Old", is_active=False))
    while services.note_expired() == 0:
        pass
    assert services.note_expired() == 0

    assert deliveries.deliver_due() == len(receiver.posts)

    got = receiver.got()
    assert {kind for kind, _ in got} == set(EventType)
    assert all("https://nescio.example.org/" in data["link"] for _, data in got)
    ids = [headers["webhook-id"] for headers, _ in receiver.posts]
    assert ids == sorted(ids)
    by_kind = dict(got)
    assert by_kind["escalation.replied"]["state"] == "closed"
    assert by_kind["conflict.found"]["entries"] == [first.pk, second.pk]
    assert by_kind["job.failed"]["kind"] == "no.such_kind"
    assert by_kind["policy.activated"]["version"] == policy.version
    assert by_kind["job.succeeded"]["job"] == str(done.pk)
    assert by_kind["answer.voted"]["vote"] == vote.pk
    assert by_kind["entry.changed"]["entry"] == first.pk
    assert by_kind["notice.sent"]["user"] == asker.username
    assert by_kind["source.failed"]["source"] == source.pk
    for once in ("drift.found", "source.failed", "delivery.failed", "job.succeeded"):
        assert [kind for kind, _ in got].count(once) == 1
    for _, body in receiver.posts:
        assert "euros" not in body.decode()
        assert "bank" not in body.decode()


def test_a_copy_learns_what_changes(owner, receiver):
    make_endpoint(owner, receiver.url, EventType.ENTRY_CHANGED, EventType.ANSWER_VOTED)
    entry = make_entry("It costs 12 euros.")
    voted = make_answer(make_user())
    vote = Vote.objects.create(answer=voted, user=make_user(), is_up=True)
    boss = make_user(Role.CURATOR)

    edit_entry(
        entry_id=entry.pk, author=boss, may_verify=True, text="It costs 13 euros."
    )
    retire_entry(entry_id=entry.pk, by=boss)
    Vote.objects.filter(pk=vote.pk).update(comment="Good.")
    Vote.objects.filter(pk=vote.pk).update(is_up=False, reasons=["outdated"])
    deliveries.deliver_due()

    got = [(kind, {**data, "link": ""}) for kind, data in receiver.got()]
    about = {"knowledge_base": "cards", "link": "", "entry": entry.pk}
    changed = [data for kind, data in got if kind == "entry.changed"]
    assert changed == [
        about | {"revision": 2, "state": "verified"},
        about | {"revision": 3, "state": "retired"},
    ]
    ratings = [
        (data["rating"], data["reasons"])
        for kind, data in got
        if kind == "answer.voted"
    ]
    assert ratings == [("up", []), ("down", ["outdated"])]


def test_that_a_message_about_a_message_was_given_up_is_no_event(owner, receiver):
    endpoint = make_endpoint(owner, receiver.url, is_active=False)
    let_one_be_given_up(endpoint)
    event = Event.objects.get(type=EventType.DELIVERY_FAILED)

    let_one_be_given_up(endpoint, event)

    assert Event.objects.filter(type=EventType.DELIVERY_FAILED).count() == 1


def test_what_was_rolled_back_did_not_happen(owner, receiver):
    make_endpoint(owner, receiver.url)

    with transaction.atomic():
        make_answer(make_user())
        transaction.set_rollback(True)

    assert not Event.objects.exists()


@pytest.mark.parametrize(
    "change",
    [
        {"types": [EventType.JOB_FAILED]},
        {"is_active": False},
        {"base": "other"},
    ],
)
def test_what_nobody_wants_is_not_written(owner, receiver, change):
    if base := change.pop("base", None):
        change["knowledge_base"] = make_knowledge_base(base)
    endpoint = make_endpoint(owner, receiver.url)
    Endpoint.objects.filter(pk=endpoint.pk).update(**change)

    make_answer(make_user())

    assert not Event.objects.exists()


def test_evaluations_and_answers_are_no_refusals(owner, receiver):
    make_endpoint(owner, receiver.url, EventType.ANSWER_REFUSED)

    make_answer(make_user(), channel=Answer.Channel.EVALUATION)
    make_answer(make_user(), cited=(make_entry(),))

    assert not Event.objects.exists()


def test_an_owner_is_sent_only_what_they_may_see(owner, receiver):
    vault = make_audience("vault", groups=["vault"])
    member = make_user(Role.ADMIN, groups=["vault"])
    make_endpoint(owner, receiver.url)
    own = make_endpoint(member, receiver.url, name="Vault")
    hidden = make_entry("The vault opens at 9.", audience=vault)

    deliveries.deliver_due()

    assert [data["entry"] for _, data in receiver.got()] == [hidden.pk]
    assert Delivery.objects.get().endpoint == own
    assert not Delivery.objects.visible_to(owner).exists()
    assert Delivery.objects.visible_to(member).exists()


def test_the_true_reason_of_a_refusal_is_the_superusers(owner, receiver):
    make_endpoint(owner, receiver.url, EventType.ANSWER_REFUSED)

    make_answer(make_user(), reason="not_entitled", shown_reason="nothing_known")
    deliveries.deliver_due()

    assert receiver.got()[0][1]["reason"] == "nothing_known"


def test_what_the_owner_may_not_see_any_more_is_not_sent(owner, receiver):
    make_endpoint(owner, receiver.url, EventType.ENTRY_VERIFIED)
    make_entry()
    receiver.statuses = [500]
    deliveries.deliver_due()

    owner.is_active = False
    owner.save()
    let_time_pass()
    deliveries.deliver_due()

    assert len(receiver.posts) == 1
    delivery = Delivery.objects.get()
    assert (delivery.state, delivery.error) == ("failed", deliveries.OUT_OF_SIGHT)


def test_it_is_tried_again_later_and_later_and_given_up(owner, receiver):
    make_endpoint(owner, receiver.url, EventType.ANSWER_REFUSED)
    make_answer(make_user())
    receiver.statuses = [500, 404, 302, *[503] * 20]
    waits = []

    for _ in range(deliveries.MAX_ATTEMPTS):
        assert deliveries.deliver_due() == 1
        assert deliveries.deliver_due() == 0  # it waits
        delivery = Delivery.objects.get()
        if delivery.next_attempt_at and delivery.last_attempt_at:
            waits.append(delivery.next_attempt_at - delivery.last_attempt_at)
        let_time_pass()

    delivery = Delivery.objects.get()
    assert (delivery.state, delivery.attempts) == ("failed", deliveries.MAX_ATTEMPTS)
    assert waits[:-1] == sorted(waits[:-1])  # the last two are alike but for chance
    assert waits[0] < timedelta(seconds=7)
    assert waits[-1] > timedelta(hours=9)
    assert deliveries.deliver_due() == 0
    assert len({headers["webhook-id"] for headers, _ in receiver.posts}) == 1


def test_a_killed_worker_sends_it_again_by_the_same_id(owner, receiver, monkeypatch):
    make_endpoint(owner, receiver.url, EventType.ANSWER_REFUSED)
    make_answer(make_user())
    with monkeypatch.context() as patch:
        patch.setattr(deliveries, "_record", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            deliveries.deliver_due()

    assert deliveries.deliver_due() == 0  # the claim holds
    Endpoint.objects.update(not_before=timezone.now())
    assert deliveries.deliver_due() == 1

    first, second = (headers["webhook-id"] for headers, _ in receiver.posts)
    assert first == second


def test_one_that_is_down_keeps_no_other_waiting(owner, receiver):
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        address = f"http://127.0.0.1:{deaf.getsockname()[1]}/"
    down = make_endpoint(owner, address, name="down")
    make_endpoint(owner, receiver.url)
    for _ in range(3):
        make_answer(make_user())

    deliveries.deliver_due()

    assert len(receiver.posts) == 3
    assert Delivery.objects.filter(endpoint=down, attempts=1).count() == 1
    down.refresh_from_db()
    assert down.failures == 1
    assert down.not_before is not None


def test_one_that_is_deleted_meanwhile_loses_no_others_results(owner, receiver):
    gone = make_endpoint(owner, receiver.url, name="gone")
    kept = make_endpoint(owner, receiver.url)
    make_answer(make_user())
    deliveries._route()
    batches = deliveries._claim(timezone.now())
    services.delete_endpoint(gone.pk, by=owner)

    for batch in batches:
        deliveries._record(batch, deliveries._post_in_order(batch, float("inf")))

    assert Delivery.objects.filter(endpoint=kept).values_list("state").get() == (
        Delivery.State.DELIVERED,
    )


@pytest.mark.slow
def test_one_that_is_edited_meanwhile_keeps_what_else_was_written(owner, receiver):
    endpoint = make_endpoint(owner, receiver.url)

    def edit():
        services.edit_endpoint(endpoint.pk, by=owner, name="Other")
        connection.close()

    edited = threading.Thread(target=edit)
    with transaction.atomic():
        secret = services.rotate_secret(endpoint.pk, by=owner).secret_seed
        edited.start()
        edited.join(1.0)
        assert edited.is_alive(), "it did not wait for the row"
    edited.join()

    endpoint.refresh_from_db()
    assert (endpoint.name, endpoint.secret_seed) == ("Other", secret)


def test_one_that_fails_for_days_is_switched_off_and_its_owner_learns_it(
    owner, receiver, settings
):
    settings.MAIL_URL = "smtp://localhost"
    endpoint = make_endpoint(owner, receiver.url)
    Endpoint.objects.update(failing_since=timezone.now() - timedelta(days=4))
    make_answer(make_user())
    receiver.statuses = [500]

    deliveries.deliver_due()

    endpoint.refresh_from_db()
    assert not endpoint.is_active
    assert "Answered 500" in endpoint.switched_off_reason
    (sent,) = mail.outbox
    assert sent.to == ["olga@example.org"]
    assert f"/endpoint/{endpoint.pk}/" in sent.body
    with pytest.raises(EndpointStateError, match="switch it on"):
        services.replay(Delivery.objects.get().pk, by=owner)


def test_one_that_is_gone_says_so_at_once(owner, receiver):
    make_endpoint(owner, receiver.url)
    make_answer(make_user())
    receiver.statuses = [410]

    deliveries.deliver_due()

    assert not Endpoint.objects.get().is_active


def test_a_success_ends_what_was_counted(owner, receiver):
    make_endpoint(owner, receiver.url, EventType.ANSWER_REFUSED)
    make_answer(make_user())
    receiver.statuses = [500]
    deliveries.deliver_due()
    assert Endpoint.objects.get().failures == 1

    let_time_pass()
    deliveries.deliver_due()

    endpoint = Endpoint.objects.get()
    assert (endpoint.failures, endpoint.failing_since) == (0, None)


def test_a_new_secret_signs_beside_the_former_one_for_a_day(owner, receiver):
    endpoint = make_endpoint(owner, receiver.url, EventType.ANSWER_REFUSED)
    former = endpoint.secret

    new = services.rotate_secret(endpoint.pk, by=owner).secret

    assert new != former
    services.send_test(endpoint.pk, by=owner)
    for secret in (former, new):
        headers, body = receiver.posts[0]
        assert Webhook(secret).verify(body, headers)["type"] == "endpoint.test"
    Endpoint.objects.update(rotated_at=timezone.now() - timedelta(hours=25))
    services.send_test(endpoint.pk, by=owner)
    headers, body = receiver.posts[1]
    Webhook(new).verify(body, headers)
    with pytest.raises(WebhookVerificationError):
        Webhook(former).verify(body, headers)


def test_only_the_owner_and_superusers_may_test_and_rotate(owner, receiver):
    endpoint = make_endpoint(owner, receiver.url)
    other = make_user(Role.ADMIN)

    for act in (services.send_test, services.rotate_secret):
        with pytest.raises(NotFoundError):
            act(endpoint.pk, by=other)
    assert receiver.posts == []


def test_a_replay_has_the_same_id_and_all_its_attempts(owner, receiver):
    make_endpoint(owner, receiver.url, EventType.ANSWER_REFUSED)
    make_answer(make_user())
    deliveries.deliver_due()

    services.replay(Delivery.objects.get().pk, by=owner)
    deliveries.deliver_due()

    first, second = (headers["webhook-id"] for headers, _ in receiver.posts)
    assert first == second
    assert Delivery.objects.get().attempts == 1
    with pytest.raises(NotFoundError):
        services.replay(Delivery.objects.get().pk, by=make_user(Role.ADMIN))


def test_old_events_go_with_their_deliveries(owner, receiver):
    make_endpoint(owner, receiver.url, EventType.ANSWER_REFUSED)
    make_answer(make_user())
    tasks.deliver_events()
    assert services.prune_events(timedelta(days=1)) == 0

    Event.objects.update(created_at=timezone.now() - timedelta(days=40))
    tasks.prune()

    assert not Delivery.objects.exists()
    assert not Event.objects.exists()


def test_who_makes_an_endpoint_is_audited_and_delivering_is_not(owner, receiver):
    with acting_for(owner):
        make_endpoint(owner, receiver.url, EventType.ANSWER_REFUSED)
    make_answer(make_user())
    deliveries.deliver_due()

    (entry,) = AuditEntry.objects.filter(kind="webhook")
    assert (entry.actor, entry.action, entry.subject) == ("olga", "insert", "olga, CRM")


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("http://93.184.216.34/", "begins with 'http'"),
        ("file:///etc/passwd", "begins with 'file'"),
        ("https://127.0.0.1/", "not a public address"),
        ("https://localhost/", "not a public address"),
        ("https://169.254.169.254/latest", "not a public address"),
        ("https://[::ffff:10.0.0.1]/", "not a public address"),
        ("https://name:word@example.org/", "contains a user name or a password"),
        ("https://", "begins with"),
        ("https://example.org:99999/", "is not an address"),
    ],
)
def test_only_public_addresses_are_posted_to(url, said):
    result = post(url, Message("evt_1", b"{}"), [b"key"])

    assert result.status is None
    assert said in result.error


@pytest.mark.parametrize(
    ("address", "public"),
    [
        ("93.184.216.34", True),
        ("2606:2800:220:1:248:1893:25c8:1946", True),
        ("10.1.2.3", False),
        ("100.64.0.1", False),
        ("0.0.0.0", False),
        ("224.0.0.1", False),
        ("::1", False),
        ("fe80::1%eth0", False),
        ("fd00::1", False),
        ("::ffff:192.168.0.1", False),
        ("64:ff9b::7f00:1", False),
        ("2002:7f00:1::", False),
    ],
)
def test_private_addresses_are_known_in_every_form(address, public):
    assert is_public(address) is public


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1:8292",
        "[::1]",
        "10.1",
        "LocalHost.",
        "hook.localhost",
        "169.254.169.254",
    ],
)
def test_an_address_that_is_private_by_its_text_is_refused_in_the_form(settings, host):
    with pytest.raises(PrivateAddressError, match="NESCIO_WEBHOOK_ALLOW_PRIVATE"):
        checked_url(f"https://{host}/hook")

    assert checked_url("https://nowhere.invalid/hook")  # is looked up for each post
    assert checked_url("https://93.184.216.34/hook")
    settings.WEBHOOK_ALLOW_PRIVATE = True
    assert checked_url(f"https://{host}/hook")


def test_the_form_of_an_endpoint_says_what_allows_a_private_address(client, owner):
    client.force_login(owner)
    said = {
        "name": "CRM",
        "url": "https://127.0.0.1:8292/hook",
        "types": ["job.failed"],
    }

    shown = client.post(reverse("admin:integrations_endpoint_add"), said).text

    assert "127.0.0.1 is not a public address" in shown
    assert "NESCIO_WEBHOOK_ALLOW_PRIVATE" in shown
    assert not Endpoint.objects.exists()


def test_a_redirect_is_not_followed(receiver):
    receiver.statuses = [302]

    result = post(receiver.url, Message("evt_1", b"{}"), [b"key"])

    assert "redirects are not followed" in result.error
    assert len(receiver.posts) == 1


@contextmanager
def dripping():
    """Serve a header a byte at a time, without end."""
    stop = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            peer, _ = server.accept()
            with peer:
                try:
                    peer.sendall(b"HTTP/1.1 200 OK\r\nX-Slow: ")
                    while not stop.wait(0.05):
                        peer.sendall(b"x")
                except OSError:
                    pass

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}/"
        stop.set()
        thread.join()


@pytest.mark.slow
def test_a_response_that_drips_is_cut_off(settings, monkeypatch):
    settings.WEBHOOK_ALLOW_PRIVATE = True
    monkeypatch.setattr(posting, "TIMEOUT_SECONDS", 0.5)

    with dripping() as url:
        result = post(url, Message("evt_1", b"{}"), [b"key"])

    assert "No complete response" in result.error
    assert result.milliseconds < 60_000


def test_an_admin_makes_tests_and_replays_by_the_pages(client, owner, receiver):
    client.force_login(owner)
    add = reverse("admin:integrations_endpoint_add")
    form = {"name": "CRM", "url": receiver.url, "types": ["answer.refused"],
            "is_active": "on"}  # fmt: skip

    refused = client.post(add, {**form, "url": "ftp://x"}).content.decode()
    assert "begins with &#x27;ftp&#x27;" in refused
    page = client.post(add, form).content.decode()

    endpoint = Endpoint.objects.get()
    assert endpoint.owner == owner
    assert endpoint.secret in page
    change = reverse("admin:integrations_endpoint_change", args=[endpoint.pk])
    assert endpoint.secret not in client.get(change).content.decode()
    test = reverse("admin:integrations_endpoint_test_this", args=[endpoint.pk])
    assert "Accepted with 200" in client.post(test, follow=True).content.decode()
    receiver.statuses = [500]
    assert "Answered 500" in client.post(test, follow=True).content.decode()
    failed = Delivery.objects.get(state="failed")
    listed = reverse("admin:integrations_delivery_changelist")
    received = client.get(
        f"{listed}?state__exact=failed&type=endpoint.test"
    ).content.decode()
    assert "endpoint CRM" in received
    row = reverse("admin:integrations_delivery_change", args=[failed.pk])
    assert (
        "&quot;type&quot;: &quot;endpoint.test&quot;"
        in client.get(row).content.decode()
    )
    chosen = {"action": "replay_chosen", "_selected_action": [failed.pk]}
    client.post(listed, chosen)
    deliveries.deliver_due()
    failed.refresh_from_db()
    assert failed.state == "delivered"
    rotate = reverse("admin:integrations_endpoint_rotate_this", args=[endpoint.pk])
    page = client.post(rotate).content.decode()
    assert Endpoint.objects.get().secret in page
    assert Endpoint.objects.get().secret != endpoint.secret


def test_another_admin_sees_it_and_may_only_switch_it_off(client, owner, receiver):
    endpoint = make_endpoint(owner, receiver.url)
    other = make_staff(Role.ADMIN)
    client.force_login(other)
    services.send_test(endpoint.pk, by=owner)
    change = reverse("admin:integrations_endpoint_change", args=[endpoint.pk])
    listed = reverse("admin:integrations_endpoint_changelist")

    assert client.get(change).status_code == 200
    assert client.post(change, {"url": "https://evil.example.org"}).status_code == 403
    sent = client.get(reverse("admin:integrations_delivery_changelist"))
    assert "endpoint CRM" not in sent.content.decode()
    client.post(listed, {"action": "switch_off", "_selected_action": [endpoint.pk]})

    endpoint.refresh_from_db()
    assert (endpoint.is_active, endpoint.url) == (False, receiver.url)


HOOKS = "/api/v1/webhooks"
SENT = "/api/v1/webhook-deliveries"


def hook(url: str, **fields) -> dict[str, Any]:
    return {"name": "CRM", "url": url, "types": [EventType.ANSWER_REFUSED], **fields}


def test_an_admin_keeps_endpoints_over_rest(owner, receiver):
    client = rest_client(owner)
    base = make_knowledge_base()
    given = hook(receiver.url, knowledge_base=base.slug)

    made = client.post(HOOKS, given, format="json")
    assert made.status_code == 201
    secret, address = made.json()["secret"], f"{HOOKS}/{made.json()['id']}"
    shown = client.get(address).json()
    assert "secret" not in shown
    assert shown["owner"] == "olga"
    assert (shown["knowledge_base"], shown["condition"]) == (base.slug, "works")
    assert client.get(HOOKS).json()["results"] == [shown]

    tested = client.post(f"{address}/test").json()
    assert (tested["state"], tested["status"]) == ("delivered", 200)
    headers, body = receiver.posts[0]
    assert Webhook(secret).verify(body, headers)["type"] == "endpoint.test"

    Endpoint.objects.update(failures=9, failing_since=timezone.now())
    changes = {"types": [EventType.GAP_OPENED], "knowledge_base": None}
    changed = client.patch(address, changes, format="json").json()
    assert (changed["types"], changed["knowledge_base"]) == (["gap.opened"], None)
    assert (changed["name"], changed["condition"]) == ("CRM", "works")

    rotated = client.post(f"{address}/rotate").json()["secret"]
    assert rotated == Endpoint.objects.get().secret != secret
    assert client.delete(address).status_code == 204
    assert client.get(address).status_code == 404
    assert client.patch(address, {"is_active": False}, format="json").status_code == 404


def test_deliveries_are_read_and_sent_again_over_rest(owner, receiver):
    make_endpoint(owner, receiver.url, EventType.ANSWER_REFUSED)
    make_endpoint(owner, receiver.url, EventType.ANSWER_REFUSED, name="Other")
    answer = make_answer(make_user())
    receiver.statuses = [500, 500]
    deliveries.deliver_due()
    client = rest_client(owner)
    first = Endpoint.objects.get(name="CRM").pk

    narrowed = f"{SENT}?endpoint={first}&state=pending&type=answer.refused"
    (shown,) = client.get(narrowed).json()["results"]
    assert len(client.get(f"{SENT}?page_size=1").json()["results"]) == 1
    assert (shown["status"], shown["attempts"]) == (500, 1)
    assert shown["data"]["answer"] == str(answer.pk)
    again = client.post(f"{SENT}/{shown['id']}/replay").json()
    assert (again["state"], again["attempts"]) == ("pending", 0)
    let_time_pass()
    deliveries.deliver_due()

    assert client.get(f"{SENT}/{shown['id']}").json()["state"] == "delivered"
    ids = [headers["webhook-id"] for headers, _ in receiver.posts]
    assert set(ids) == {shown["webhook_id"]}
    Endpoint.objects.update(is_active=False)
    assert client.post(f"{SENT}/{shown['id']}/replay").status_code == 409


@pytest.mark.parametrize(
    ("fields", "status", "said"),
    [
        ({"url": "https://127.0.0.1/x"}, 400, "private_address"),
        ({"url": "http://example.org/"}, 400, "webhook_address"),
        ({"types": ["entry.eaten"]}, 400, "invalid"),
        ({"types": []}, 400, "invalid"),
        ({"secret_seed": "mine"}, 400, "invalid"),
        ({"name": "Taken"}, 409, "conflict"),
    ],
)
def test_an_endpoint_that_can_not_be_is_refused_over_rest(owner, fields, status, said):
    make_endpoint(owner, "https://example.org/", name="Taken")
    given = hook("https://example.org/") | fields

    refused = rest_client(owner).post(HOOKS, given, format="json")

    assert (refused.status_code, refused.json()["error"]["code"]) == (status, said)
    assert Endpoint.objects.count() == 1


def test_another_admin_may_only_switch_it_off_over_rest(owner, receiver):
    endpoint = make_endpoint(owner, receiver.url, EventType.ANSWER_REFUSED)
    sent = services.send_test(endpoint.pk, by=owner)
    client, address = rest_client(make_user(Role.ADMIN)), f"{HOOKS}/{endpoint.pk}"

    for method, path, given in (
        ("patch", address, {"url": "https://elsewhere.example/"}),
        ("patch", address, {"is_active": True}),
        ("post", f"{address}/test", {}),
        ("post", f"{address}/rotate", {}),
        ("delete", address, {}),
        ("get", f"{SENT}/{sent.pk}", {}),
        ("post", f"{SENT}/{sent.pk}/replay", {}),
    ):
        answer = getattr(client, method)(path, given, format="json")
        assert answer.status_code == 404, (method, path)
    assert client.get(SENT).json()["results"] == []
    narrowed = client.get(f"{SENT}?endpoint={endpoint.pk}")
    assert narrowed.status_code == 400
    off = client.patch(address, {"is_active": False}, format="json")
    assert off.json()["condition"] == "off"
    assert len(receiver.posts) == 1


@pytest.mark.parametrize("role", [Role.AGENT, Role.SME, Role.CURATOR])
def test_webhooks_are_for_admins_alone(owner, receiver, role):
    endpoint = make_endpoint(owner, receiver.url, EventType.ANSWER_REFUSED)
    client, address = rest_client(make_user(role)), f"{HOOKS}/{endpoint.pk}"

    answers = [
        client.get(HOOKS),
        client.get(address),
        client.get(SENT),
        client.post(HOOKS, hook(receiver.url, name="Mine"), format="json"),
        client.patch(address, {"is_active": False}, format="json"),
        client.post(f"{address}/test"),
        client.post(f"{address}/rotate"),
        client.delete(address),
    ]

    assert {answer.status_code for answer in answers} == {403}
    assert Endpoint.objects.get().is_active
