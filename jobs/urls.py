from django.urls import path
from rest_framework.renderers import JSONRenderer

from jobs.api import EventStreamRenderer, JobViewSet

urlpatterns = [
    path("jobs", JobViewSet.as_view({"get": "list"}), name="jobs"),
    path("jobs/<uuid:job_id>", JobViewSet.as_view({"get": "retrieve"}), name="job"),
    path(
        "jobs/<uuid:job_id>/cancel",
        JobViewSet.as_view({"post": "cancel"}),
        name="job_cancel",
    ),
    path(
        "jobs/<uuid:job_id>/retry",
        JobViewSet.as_view({"post": "retry"}),
        name="job_retry",
    ),
    path(
        "jobs/<uuid:job_id>/events",
        JobViewSet.as_view(
            {"get": "events"}, renderer_classes=[EventStreamRenderer, JSONRenderer]
        ),
        name="job_events",
    ),
]
