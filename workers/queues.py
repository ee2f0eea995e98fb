"""Which kind of job waits in which queue: what takes hours keeps nobody waiting.

Each queue has a worker of its own. What is in no line here is interactive: it takes
seconds, or somebody waits for it.
"""

INTERACTIVE = "interactive"
IMPORTS = "imports"
TRAINING = "training"
EVALUATION = "evaluation"
QUEUES = (INTERACTIVE, IMPORTS, TRAINING, EVALUATION)

JOB_QUEUES = {
    "kb.embed": IMPORTS,
    "kb.enrich": IMPORTS,
    "kb.export": IMPORTS,
    "kb.find_conflicts": IMPORTS,
    "kb.import": IMPORTS,
    "kb.tidy_vectors": IMPORTS,
    "probes.train": TRAINING,
    "qa.keep_past_questions": TRAINING,
    "qa.retrain": TRAINING,
    "qa.calibrate_itself": EVALUATION,
    "qa.evaluate": EVALUATION,
    "qa.watch_drift": EVALUATION,
}
