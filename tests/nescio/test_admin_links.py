import pytest
from django.contrib import admin
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from accounts.roles import Role
from integrations.models import Delivery, Endpoint, Event, Widget
from jobs.models import Job
from jobs.services import enqueue
from kb.models import FollowedSource, Import
from probes.models import Probe
from probes.services import register
from qa.models import Gap, Policy, Retraining
from qa.policies.services import active_policy
from tests.clients import page_client
from tests.factories import make_audience, make_entry, make_knowledge_base, make_user
from tests.probes.probe_files import activation_files

pytestmark = pytest.mark.django_db
OPENS_A_PAGE = {
    "bring", "draw", "export", "follow", "make_new_version", "open_calibration", "open_data",
    "open_deliveries", "open_exports", "open_preview", "propose", "start", "take", "train",
    "train_method", "try_this", "upload",
}  # fmt: skip
SUPERUSERS_ALONE = {"replace_secret"}


@pytest.mark.slow
def test_no_link_of_the_admin_changes_anything_when_it_is_followed():
    user = make_user(Role.ADMIN)
    User.objects.filter(pk=user.pk).update(is_staff=True)
    client = page_client(User.objects.get(pk=user.pk))
    enqueue("kb.embed", {"model": "x"}, owner=user)
    active_policy(make_knowledge_base())
    make_entry()
    register(activation_files())
    Import.objects.create(
        knowledge_base=make_knowledge_base(), audience=make_audience(), file="a.csv",
        file_name="a.csv", format="csv", source="a.csv",
        created_by=user, state=Import.State.PLANNED,
    )  # fmt: skip
    FollowedSource.objects.create(
        name="Help", kind="folder", address="/", every_hours=24, note="Most is gone.",
        knowledge_base=make_knowledge_base(), owner=user,
    )  # fmt: skip
    Retraining.objects.create(kind="early", reviewed=400, state="waiting")
    now = timezone.now()
    Gap.objects.create(
        knowledge_base=make_knowledge_base(), question="Is there a student card?",
        vector=[1.0] * 384, first_seen=now, last_seen=now, state="dismissed", reason="No.",
        closed_at=now,
    )  # fmt: skip
    endpoint = Endpoint.objects.create(
        name="CRM", url="https://x", owner=user, types=[]
    )
    Widget.objects.create(
        name="help", knowledge_base=make_knowledge_base(), account=user, origins=[]
    )
    event = Event.objects.create(type="endpoint.test", data={}, created_at=now)
    Delivery.objects.create(endpoint=endpoint, event=event, state="failed")
    walked = set()

    for model, model_admin in admin.site._registry.items():
        meta = model._meta
        for kind in ("actions_list", "actions_detail", "actions_row"):
            for name in getattr(model_admin, kind, ()) or ():
                arguments = []
                if kind != "actions_list":
                    arguments = [model._default_manager.values_list("pk", flat=True)[0]]
                url = reverse(
                    f"admin:{meta.app_label}_{meta.model_name}_{name}", args=arguments
                )
                before = _rows()
                page = client.get(url)
                assert _rows() == before
                if name in SUPERUSERS_ALONE:
                    assert page.status_code == 403
                elif name not in OPENS_A_PAGE:
                    assert page.status_code == 200
                    assert 'id="confirm-action"' in page.content.decode()
                walked.add(name)

    assert {"cancel_this", "retry_this", "activate_this", "evaluate"} <= walked
    assert {"shadow_this", "retire_this", "export"} <= walked
    assert {"test_this", "rotate_this", "replay_this"} <= walked
    assert {"retrain", "approve_this", "decline_this", "take_this_back"} <= walked
    assert "reopen_this" in walked


_STEERED = (Delivery, Endpoint, Gap, Job, Policy, Probe, Retraining, Widget)


def _rows():
    return [list(m.objects.order_by("pk").values()) for m in _STEERED]


@pytest.mark.parametrize("key", ["nonsense", "00000000-0000-4000-8000-000000000000"])
def test_an_unknown_row_is_not_found_by_link_or_form(key):
    client = page_client(User.objects.create_superuser("root"))
    url = reverse("admin:jobs_job_cancel_this", args=[key])

    assert client.get(url).status_code == 404
    assert client.post(url).status_code == 404


def test_a_form_from_another_site_changes_nothing():
    client = Client(enforce_csrf_checks=True)
    user = User.objects.create_superuser("root")
    client.force_login(user)
    job = enqueue("kb.embed", {"model": "x"}, owner=user)

    forged = client.post(reverse("admin:jobs_job_cancel_this", args=[job.pk]))

    assert forged.status_code == 403
    assert Job.objects.get().state == Job.State.QUEUED
