"""Sign-in and sign-out by an identity provider, through its own pages."""

import pytest
import requests
from django.contrib.auth.models import Group
from playwright.sync_api import expect

from accounts.models import ProviderGroup
from tests.accounts import identity_provider
from tests.browser.conftest import violations
from tests.nescio.running import free_port

PHONE = {"width": 390, "height": 740}


@pytest.mark.usefixtures("knowledge")
def test_the_way_in_and_out_by_keyboard(make_desk, settings):
    row = ProviderGroup.objects.create(name="desk")
    row.groups.add(Group.objects.get(name="agent"))
    with identity_provider.running(free_port()) as issuer:
        identity_provider.use(settings, issuer)
        described = {"preferred_username": "ada", "groups": ["desk"]}
        requests.put(f"{issuer}/users/4711", json=described, timeout=10)
        desk = make_desk(color_scheme="dark", viewport=PHONE)
        page = desk.open("/answers")
        page.route("**/cdn.jsdelivr.net/**", lambda route: route.fulfill(body=""))

        assert violations(page) == []
        page.get_by_role("link", name="Sign in with Example ID").press("Enter")
        page.get_by_placeholder("sub").fill("4711")
        page.keyboard.press("Enter")
        expect(page).to_have_url(f"{desk.address}/answers")
        page.get_by_role("button", name="Sign out").press("Enter")
        leave = page.get_by_role("link", name="Sign out there too")
        leave.wait_for()
        assert violations(page) == []
        leave.press("Enter")
        page.wait_for_url(f"{issuer}/**")
