"""Search: the entries that may serve as evidence for a question, or why there are none.

Every statement applies the scope; nothing is filtered afterwards. Closeness and words,
fused, rank the evidence; distances, measured on full-precision vectors, decide.
"""

from kb.embedding.services import embed_question

from .evidence import search
from .related import contradictions_between, nearest_excluded, not_compared_among

# The metric, the fusion and the decision rule; thresholds are only valid for the same
# method. A change that affects distances or the evidence found gets a new number.
METHOD = "euclidean/parts-place-0.7/z-sum-0.5/idf/1"
