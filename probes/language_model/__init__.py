"""A causal language model with access to its internals.

Importing this package imports torch: code that may run without a model imports it late.
"""

from probes.language_model.batch import Written
from probes.language_model.copying import Copied, copy_span, copy_whole
from probes.language_model.loading import load_model, load_model_from
from probes.language_model.model import WhiteBoxModel
from probes.language_model.tokens import Tokens, Turn
from probes.language_model.values import Context, Generated, Passage, Scored
