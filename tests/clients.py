"""Clients of pages and of the REST interface, signed in as somebody."""

from django.contrib.auth.models import User
from django.test import Client
from rest_framework.test import APIClient


def page_client(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def rest_client(user: User) -> APIClient:
    client = APIClient()
    client.force_authenticate(user)
    return client
