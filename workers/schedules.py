"""What beat sends, and how often; every task here may run twice at the same time."""

from datetime import timedelta

from celery.schedules import crontab
from django.conf import settings


def schedules() -> dict[str, dict[str, object]]:
    sweep_every: timedelta = settings.JOB_SWEEP_INTERVAL
    # When each task is sent, and after how many seconds it is dropped.
    times: dict[str, tuple[timedelta | crontab, float]] = {
        "sweep": (sweep_every, max(sweep_every.total_seconds(), 10)),
        "prune": (timedelta(hours=1), 3600),
        "keep_vector_index": (timedelta(minutes=10), 600),
        "fail_abandoned_questions": (timedelta(minutes=5), 300),
        "find_conflicts": (crontab(hour=2, minute=40), 6 * 3600),
        "count_uses": (timedelta(minutes=3), 180),
        "doubt_entries": (timedelta(minutes=3), 180),
        "weigh_votes": (crontab(minute=25), 1800),
        "count_days": (timedelta(minutes=1), 60),
        "find_gaps": (timedelta(minutes=10), 600),
        "ask_again": (timedelta(minutes=1), 60),
        "deliver_events": (timedelta(seconds=5), 5),
        "note_expired_entries": (timedelta(minutes=5), 300),
        "send_notices": (timedelta(hours=1), 3600),
        "keep_past_questions": (crontab(minute=40), 1800),
        "retrain": (crontab(hour="*/3", minute=50), 3600),
        "erase_old_texts": (crontab(hour=0, minute=50), 6 * 3600),
        "keep_upkeep": (crontab(hour=2, minute=10), 6 * 3600),
        "propose_for_gaps": (crontab(hour=1, minute=30), 6 * 3600),
        "remind_owners": (crontab(hour=6, minute=30), 6 * 3600),
        "draw_reviews": (crontab(hour=4, minute=20, day_of_week="mon"), 6 * 3600),
        "calibrate_where_due": (crontab(hour="*/2", minute=5), 3600),
        "watch_drift": (crontab(hour=3, minute=20), 6 * 3600),
    }
    return {
        name: {
            "task": f"workers.{name}",
            "schedule": schedule,
            "options": {"expires": expires},
        }
        for name, (schedule, expires) in times.items()
    }
