from django.urls import path

from jobs.api import JobCancelView, JobEventsView, JobListView, JobRetryView, JobView

urlpatterns = [
    path("jobs", JobListView.as_view(), name="jobs"),
    path("jobs/<uuid:job_id>", JobView.as_view(), name="job"),
    path("jobs/<uuid:job_id>/cancel", JobCancelView.as_view(), name="job_cancel"),
    path("jobs/<uuid:job_id>/retry", JobRetryView.as_view(), name="job_retry"),
    path("jobs/<uuid:job_id>/events", JobEventsView.as_view(), name="job_events"),
]
