from django.urls import path

from accounts.api import TokenListView, TokenView

urlpatterns = [
    path("tokens", TokenListView.as_view(), name="tokens"),
    path("tokens/<uuid:token_id>", TokenView.as_view(), name="token"),
]
