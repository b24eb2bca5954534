"""Closed forms of attention, the footnote-4 Monte Carlo, the page's numbers, and checks for any attention.

`detect` finds out which mistake an attention of yours has; `python -m attnlab.theory.detectors.matrix` shows how it
does on ours. The closed forms are small pure functions in `moments`, `jacobian`, `softmax_laws`, `saturated_laws`,
`gradient_ratios`, `mask_identities` and `axes_maps`.
"""

from attnlab.theory.detectors import Check, MaskStyle, Mistake, Report, Seen, Subject, detect

__all__ = ["Check", "MaskStyle", "Mistake", "Report", "Seen", "Subject", "detect"]
