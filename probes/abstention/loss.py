"""What a probe is fitted by: cross-entropy, and how far its confidence is off on average.

References:
    Response abstinence, equations 7 to 9, after Patra et al. (arXiv 2212.10005).
"""

import torch
from torch.nn import functional


def abstention_loss(
    logits: torch.Tensor,
    is_right: torch.Tensor,
    *,
    huber_weight: float,
    huber_delta: float,
) -> torch.Tensor:
    """Return cross-entropy + huber_weight * Huber(mean confidence - mean correctness).

    As in equation 8, confidence is the predicted class's probability and correctness
    is whether the prediction is right, both over the batch; only the confidence has a
    gradient. Batches of a few dozen make the means worth something.

    Args:
        logits: Shape (rows, 2).
        is_right: 1 where the answer is right, else 0, shape (rows,).
        huber_weight: The paper's lambda, at least 0; 0 is plain cross-entropy.
        huber_delta: Gap in (0, 1] from which the penalty grows linearly; 1 is the plain
            squared gap, since no gap is larger.
    """
    loss = functional.cross_entropy(logits, is_right)
    if huber_weight == 0:
        return loss
    confidence, predicted = logits.softmax(1).max(1)
    correctness = (predicted == is_right).float()
    gap = functional.huber_loss(
        confidence.mean(), correctness.mean(), delta=huber_delta
    )
    return loss + huber_weight * gap
