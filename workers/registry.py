"""Which handler does which kind of job: the one place where work is composed."""

from functools import partial

from jobs.run import Handler
from kb.archive.background import export_in_background
from kb.services.bulk_jobs import change_in_background
from kb.services.conflict_job import find_conflicts
from kb.services.embedding import embed_and_switch, tidy_vectors
from kb.services.enrichment_job import enrich_in_background
from kb.services.imports import import_in_background
from kb.services.reminders import remind_owners
from kb.services.upkeep import keep_upkeep
from qa.evaluation.background import evaluate_in_background
from qa.language_models.judge_selection import configured_judge
from qa.language_models.writer_selection import load_writer
from qa.services.drift import watch_drift
from qa.services.entry_confidence import weigh_votes
from qa.services.gap_finding import find_gaps
from qa.services.notices import mail_notice, post_notice
from qa.services.past_questions import keep_past_questions
from qa.services.repeats import ask_again
from qa.services.review_sampling import draw_in_background
from qa.training.background import train_in_background
from qa.training.retraining import retrain_in_background

HANDLERS: dict[str, Handler] = {
    "kb.change_entries": change_in_background,
    "kb.embed": embed_and_switch,
    "kb.enrich": partial(enrich_in_background, load_writer=load_writer),
    "kb.export": export_in_background,
    "kb.find_conflicts": partial(find_conflicts, load_judge=configured_judge),
    "kb.keep_upkeep": keep_upkeep,
    "kb.remind_owners": remind_owners,
    "kb.import": import_in_background,
    "kb.tidy_vectors": tidy_vectors,
    "probes.train": train_in_background,
    "qa.ask_again": ask_again,
    "qa.draw_reviews": draw_in_background,
    "qa.evaluate": evaluate_in_background,
    "qa.find_gaps": find_gaps,
    "qa.mail_notice": mail_notice,
    "qa.post_notice": post_notice,
    "qa.keep_past_questions": keep_past_questions,
    "qa.retrain": retrain_in_background,
    "qa.watch_drift": watch_drift,
    "qa.weigh_votes": weigh_votes,
}
