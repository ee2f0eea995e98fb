"""The handler of each kind of job: the one place where jobs are wired together."""

from functools import partial

from integrations.chat import background as chat
from integrations.events.alerts import mail_alerts
from jobs.run import Handler, JobRun
from kb.archive.exports import export_in_background
from kb.conflicts.background import find_conflicts
from kb.embedding.switch import embed_and_switch, tidy_vectors
from kb.enrichment.background import enrich_in_background
from kb.entries.bulk import change_in_background
from kb.imports.models import Import
from kb.imports.services import import_in_background
from kb.sources.checking import follow_in_background
from kb.upkeep.reminders import remind_owners
from kb.upkeep.services import keep_upkeep
from qa.calibration.drift import watch_drift
from qa.calibration.self_calibration_jobs import (
    calibrate_in_background,
    calibrate_where_due,
    enqueue_check,
)
from qa.evaluation.runs import evaluate_in_background
from qa.gaps.finding import find_gaps
from qa.gaps.notices import mail_notice
from qa.gaps.repeats import ask_again
from qa.inference.configured import configured_judge, load_writer
from qa.privacy.persons import erase_in_background
from qa.privacy.scrubbing import erase_old_texts
from qa.reviews.sampling import draw_in_background
from qa.training.jobs import retrain_in_background, train_in_background
from qa.training.past_questions import keep_past_questions
from qa.votes.entry_confidence import weigh_votes


def import_and_calibrate(run: JobRun) -> dict[str, object]:
    """Import, then enqueue the check whether the base has changed enough to calibrate.

    The check is a job of its own, so that it cannot fail a finished import.
    """
    result = import_in_background(run)
    if result["state"] == Import.State.APPLIED:
        enqueue_check()
    return result


def follow_and_calibrate(run: JobRun) -> dict[str, object]:
    """Do the same for a followed source that created or changed entries."""
    result = follow_in_background(run)
    if result["entries_created"] or result["entries_changed"]:
        enqueue_check()
    return result


HANDLERS: dict[str, Handler] = {
    chat.KIND: chat.answer_in_slack,
    "integrations.mail_alerts": mail_alerts,
    "kb.change_entries": change_in_background,
    "kb.embed": embed_and_switch,
    "kb.enrich": partial(enrich_in_background, load_writer=load_writer),
    "kb.export": export_in_background,
    "kb.find_conflicts": partial(find_conflicts, load_judge=configured_judge),
    "kb.follow": follow_and_calibrate,
    "kb.keep_upkeep": keep_upkeep,
    "kb.remind_owners": remind_owners,
    "kb.import": import_and_calibrate,
    "kb.tidy_vectors": tidy_vectors,
    "probes.train": train_in_background,
    "qa.ask_again": ask_again,
    "qa.calibrate_itself": partial(calibrate_in_background, load_writer=load_writer),
    "qa.calibrate_where_due": calibrate_where_due,
    "qa.draw_reviews": draw_in_background,
    "qa.erase_old_texts": erase_old_texts,
    "qa.erase_person": erase_in_background,
    "qa.evaluate": evaluate_in_background,
    "qa.find_gaps": find_gaps,
    "qa.mail_notice": mail_notice,
    "qa.keep_past_questions": keep_past_questions,
    "qa.retrain": retrain_in_background,
    "qa.watch_drift": watch_drift,
    "qa.weigh_votes": weigh_votes,
}
