"""What people are called on pages, and how they are found by it."""

import pytest
from django.contrib.auth.models import User
from django.template import engines

from accounts.people import by_name, find_person, people_named, person_name
from tests.factories import make_user

pytestmark = pytest.mark.django_db


def make_named(username, first="", last="", **fields):
    user = make_user(username=username)
    user.first_name, user.last_name = first, last
    for name, value in fields.items():
        setattr(user, name, value)
    user.save()
    return user


def test_people_are_called_by_their_full_name_and_chosen_by_both():
    ada, bob = make_named("ada", "Ada", "Byron"), make_named("bob")

    assert [person_name(each) for each in (ada, bob, None)] == ["Ada Byron", "bob", ""]
    assert [str(each) for each in (ada, bob)] == ["Ada Byron (ada)", "bob"]


def test_a_template_calls_nobody_nothing():
    template = engines["django"].from_string("{{ who|person|default:'nobody' }}")

    said = [template.render({"who": who}) for who in (make_named("a", "Ada"), None)]

    assert said == ["Ada", "nobody"]


def test_people_are_in_the_order_of_what_they_are_called(django_assert_num_queries):
    make_named("zoe", "Ada", "Byron")
    make_named("ben")
    make_named("amy", "", "Zander")

    with django_assert_num_queries(1):
        labels = [str(each) for each in by_name(User.objects.all())]

    assert labels == ["Ada Byron (zoe)", "ben", "Zander (amy)"]


def test_a_person_is_found_by_the_name_to_sign_in_with_or_a_full_name_of_one_alone():
    ada = make_named("ada", "Ada", "Byron")
    make_named("tom1", "Tom", "Hill")
    tom = make_named("tom2", "Tom", "Hill")
    make_named("gone", "Gone", "Away", is_active=False)

    assert find_person("ada") == find_person("ada byron") == ada
    assert find_person("tom2") == tom
    for name in ("Tom Hill", "gone", "Gone Away", "Byron", ""):
        assert find_person(name) is None
    assert find_person("ada", among=User.objects.exclude(pk=ada.pk)) is None


def test_people_are_searched_by_any_part_of_their_names():
    ada = make_named("a.b", "Ada", "Byron")
    make_named("ben")

    for part in ("a.b", "Byr", "ada by"):
        assert list(people_named(part)) == [ada]
