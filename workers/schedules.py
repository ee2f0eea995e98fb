"""What beat rings for, and how often.

Two beats do no harm: every task here may run twice at the same time.
"""

from datetime import timedelta

from celery.schedules import crontab
from django.conf import settings


def schedules() -> dict[str, dict[str, object]]:
    """Return Celery's beat schedule; a task that was not begun in time is dropped."""
    sweep_every: timedelta = settings.JOB_SWEEP_INTERVAL
    return {
        "sweep": {
            "task": "workers.sweep",
            "schedule": sweep_every,
            "options": {"expires": max(sweep_every.total_seconds(), 10)},
        },
        "prune": {
            "task": "workers.prune",
            "schedule": timedelta(hours=1),
            "options": {"expires": 3600},
        },
        "keep_vector_index": {
            "task": "workers.keep_vector_index",
            "schedule": timedelta(minutes=10),
            "options": {"expires": 600},
        },
        "fail_abandoned_questions": {
            "task": "workers.fail_abandoned_questions",
            "schedule": timedelta(minutes=5),
            "options": {"expires": 300},
        },
        "find_conflicts": {
            "task": "workers.find_conflicts",
            "schedule": crontab(hour=2, minute=40),
            "options": {"expires": 6 * 3600},
        },
        "count_uses": {
            "task": "workers.count_uses",
            "schedule": timedelta(minutes=3),
            "options": {"expires": 180},
        },
        "weigh_votes": {
            "task": "workers.weigh_votes",
            "schedule": crontab(minute=25),
            "options": {"expires": 1800},
        },
        "count_days": {
            "task": "workers.count_days",
            "schedule": timedelta(minutes=1),
            "options": {"expires": 60},
        },
        "find_gaps": {
            "task": "workers.find_gaps",
            "schedule": timedelta(minutes=10),
            "options": {"expires": 600},
        },
        "ask_again": {
            "task": "workers.ask_again",
            "schedule": timedelta(minutes=1),
            "options": {"expires": 60},
        },
        "send_notices": {
            "task": "workers.send_notices",
            "schedule": timedelta(hours=1),
            "options": {"expires": 3600},
        },
        "keep_past_questions": {
            "task": "workers.keep_past_questions",
            "schedule": crontab(minute=40),
            "options": {"expires": 1800},
        },
        "retrain": {
            "task": "workers.retrain",
            "schedule": crontab(hour="*/3", minute=50),
            "options": {"expires": 3600},
        },
        "keep_upkeep": {
            "task": "workers.keep_upkeep",
            "schedule": crontab(hour=2, minute=10),
            "options": {"expires": 6 * 3600},
        },
        "remind_owners": {
            "task": "workers.remind_owners",
            "schedule": crontab(hour=6, minute=30),
            "options": {"expires": 6 * 3600},
        },
        "draw_reviews": {
            "task": "workers.draw_reviews",
            "schedule": crontab(hour=4, minute=20, day_of_week="mon"),
            "options": {"expires": 6 * 3600},
        },
        "watch_drift": {
            "task": "workers.watch_drift",
            "schedule": crontab(hour=3, minute=20),
            "options": {"expires": 6 * 3600},
        },
    }
