"""Search: the entries that may be evidence for a question, or why there are none.

Every statement holds the scope; nothing is filtered afterwards. Nearness and
words, fused, order the evidence; distances, measured on the full-precision vectors, decide.
"""

from kb.embedding.services import embed_question

from .evidence import search
from .related import contradictions_between, nearest_excluded, not_compared_among

# The metric, the fusion and what decides, by which thresholds are held to be current. A
# change that moves distances or the evidence that is found gets a new number.
METHOD = "euclidean/parts-place-0.7/z-sum-0.5/idf/1"
