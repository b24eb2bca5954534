"""The numbers that the page "Attention: Queries, Keys and Values" prints, as data; no code here computes anything.

Released items are about Helsinki-NLP/opus-mt-en-de on one sentence. Numbers of claims (C01 ...) are those of the
pre-registered claims of the studies.
"""

from __future__ import annotations

from attnlab.theory.page.rules import AtMost, Claim, Digits, Kind, Printed, Shapes, Text

SEED_0 = (
    "torch.Generator seed 0: q then k of 100,000 pairs for d_k 4, 16, 64, 512, then q and 10 keys for 64, 512"
)
SEED_3 = "torch.Generator seed 3: q, k, v of 5 tokens and 4 numbers"
SOURCE_SENTENCE = "The cat sat on the mat because it was tired."


def _exact(id: str, what: str, digits: str) -> Printed:
    return Printed(id, what, Kind.exact, Digits(digits))


def _golden(id: str, what: str, digits: str, stream: str) -> Printed:
    return Printed(id, what, Kind.golden, Digits(digits), stream)


def _shapes(id: str, what: str, *shapes: tuple[int, ...]) -> Printed:
    return Printed(id, what, Kind.shapes, Shapes(shapes))


def _counts(id: str, what: str, digits: str) -> Printed:
    return Printed(id, what, Kind.shapes, Digits(digits))


def _bound(id: str, what: str, printed: str, at_most: float) -> Printed:
    return Printed(id, what, Kind.bound, AtMost(printed, at_most))


def _released(id: str, what: str, digits: str) -> Printed:
    return Printed(id, what, Kind.released, Digits(digits))


def _released_bound(id: str, what: str, printed: str, at_most: float) -> Printed:
    return Printed(id, what, Kind.released, AtMost(printed, at_most))


def _claim(id: str, what: str, claims: str) -> Printed:
    return Printed(id, what, Kind.claim, Claim(claims))


EQUATION_ONE = (
    _exact("S01", "by hand: sqrt(2); q1.K; scaled", "1.414 2 0 1 1.414 0.000 0.707"),
    _exact("S02", "weights of query 1", "0.576 0.140 0.284"),
    _exact("S03", "output of query 1", "7.18 2.82"),
    _exact(
        "S04", "script: scores; weights and output, row 1",
        "1.414 0.000 0.707 0.000 1.414 0.707 1.414 1.414 1.414 0.576 0.140 0.284 7.18 2.82",
    ),
    _exact("S05", "row 3: three equal scores, a third each", "1.414 1.414 1.414 0.333 0.333 0.333"),
    _exact("S06", "Q K^T", "2.000 0.000 1.000 0.000 2.000 1.000 2.000 2.000 2.000"),
    _exact("S07", "Q K^T / sqrt(d_k)", "1.414 0.000 0.707 0.000 1.414 0.707 1.414 1.414 1.414"),
    _exact(
        "S08", "weights; row sums", "0.576 0.140 0.284 0.140 0.576 0.284 0.333 0.333 0.333 1.0 1.0 1.0"
    ),
    _exact("S09", "output", "7.18 2.82 2.82 7.18 5.00 5.00"),
    _exact(
        "S10", "fp32: ours, then the library's",
        "7.1797 2.8203 2.8203 7.1797 5.0 5.0 7.1797 2.8203 2.8203 7.1797 5.0 5.0",
    ),
    _bound("S11", "ours - library, three tokens", "4.8e-07", 1e-6),
    _shapes("S12.shape", "random tensors: output", (2, 8, 10, 64)),
    _bound("S12.difference", "ours - library, random tensors", "6.0e-07", 2e-6),
)  # fmt: skip

FOOTNOTE_FOUR = (
    _exact("S13", "d_k = 4: rms of a sum of four +-1", "2"),
    _shapes("S14", "the design: pairs for four sizes", *((100_000,),) * 4),
    _golden("S15", "d_k 4: mean, variance, sd, scaled sd", "0.003 3.99 2.00 0.999", SEED_0),
    _golden("S16", "d_k 16", "0.012 15.92 3.99 0.997", SEED_0),
    _golden("S17", "d_k 64", "-0.034 64.01 8.00 1.000", SEED_0),
    _golden("S18", "d_k 512", "-0.077 514.16 22.68 1.002", SEED_0),
    _exact("S19", "largest possible entry of the Jacobian", "0.25"),
    _golden("S20", "d_k 64 unscaled: range, weight, entry", "-15.8 9.5 0.8407 0.1339", SEED_0),
    _golden("S21", "d_k 64 scaled", "-2.0 1.2 0.2484 0.1867", SEED_0),
    _golden("S22", "d_k 512 unscaled", "-60.1 46.0 1.0000 0.0000", SEED_0),
    _golden("S23", "d_k 512 scaled", "-2.7 2.0 0.5176 0.2497", SEED_0),
    _claim("S24", "a saturated head cannot learn", "C03-C06, C09"),
)

MULTI_HEAD = (
    _shapes("S25", "W_i^Q, W_i^K, W_i^V, W^O", (512, 64), (512, 64), (512, 64), (512, 512)),
    _counts("S26", "3 x 8 x 512 x 64; three 512 x 512", "786432 786432"),
    _shapes(
        "S27", "eleven steps: batch 2, n 5, d_model 16, h 4",
        (2, 5, 16), (2, 5, 16), (2, 5, 4, 4), (2, 4, 5, 4), (2, 4, 5, 4), (2, 4, 5, 5), (2, 4, 5, 5), (2, 4, 5, 4),
        (2, 5, 4, 4), (2, 5, 16), (2, 5, 16),
    ),
    _counts("S28", "problems; table; numbers a token; groups", "8 5 5 16 4 4"),
    _exact("S29", "step by step - the block", "0.0e+00"),
    _shapes("S30", "nn.MultiheadAttention: output, weights", (2, 5, 16), (2, 4, 5, 5)),
    _bound("S31.output", "ours - library: output", "4.8e-07", 2e-6),
    _bound("S31.weights", "ours - library: weights", "1.2e-07", 2e-6),
    _bound("S31.causal", "ours - library: causal, ~mask", "3.6e-07", 2e-6),
    _counts("S32", "parameters; 4 x 16 x 16 + 4 x 16", "1088 1088"),
    _shapes("S34", "four projections at the released shapes", *((512, 512),) * 4),
    _counts("S35", "parameters of a block; 4 x 512^2 + 4 x 512", "1050624 1050624"),
    _counts("S38", "columns of heads 1 and 2", "1 64 65 128"),
    _shapes(
        "S39.shape", "x, Q, weights, heads, concat, output",
        (12, 512), (8, 12, 64), (8, 12, 12), (8, 12, 64), (12, 512), (12, 512),
    ),
    _shapes("S41.shape", "encoder block: x, weights", (1, 12, 512), (1, 8, 12, 12)),
    _shapes("S65.shape", "wrong split", (1, 8, 12, 64)),
    _shapes("S66.shape", "wrong merge: output", (1, 12, 512)),
    _counts("S68", "wrong split: token, rows in head 1, pieces", "1 1 8 1 8 2 9 12 1 4"),
    Printed(
        "S69", "True in SDPA; in nn.MultiheadAttention", Kind.exact, Text("may look, may not look")
    ),
)  # fmt: skip

THREE_USES = (
    _shapes("S43.shape", "weights: encoder, decoder, cross", (1, 8, 12, 12), (1, 8, 14, 14), (1, 8, 14, 12)),
    _shapes(
        "S45.shape",
        "cross: queries, keys, weights, output",
        (1, 14, 512),
        (1, 12, 512),
        (1, 8, 14, 12),
        (1, 14, 512),
    ),
    _exact("S54", "weight above the diagonal, all layers: max", "0.0e+00"),
    _shapes("S56.shape", "decoder: x, weights", (1, 14, 512), (1, 8, 14, 14)),
)

MASK_EXAMPLE = (
    _exact("S48", "by hand: e^2; e^2 + e^1; weights", "7.389 10.107 0.731 0.269 0.000"),
    _exact("S49", "allowed; same as torch.tril", "1 0 0 0 0 1 1 0 0 0 1 1 1 0 0 1 1 1 1 0 1 1 1 1 1 True"),
    _golden(
        "S50", "scores before the mask",
        "-0.212 0.955 0.141 0.252 -0.031 -0.057 0.968 0.105 0.652 -1.325 0.165 0.101 -0.190 0.419 -0.887 "
        "0.589 -1.212 -0.498 0.380 -1.627 -0.513 0.422 0.423 0.672 -0.942", SEED_3,
    ),
    _golden(
        "S51", "scores after the mask",
        "-0.212 -inf -inf -inf -inf -0.057 0.968 -inf -inf -inf 0.165 0.101 -0.190 -inf -inf "
        "0.589 -1.212 -0.498 0.380 -inf -0.513 0.422 0.423 0.672 -0.942", SEED_3,
    ),
    _golden(
        "S52", "weights",
        "1.000 0.000 0.000 0.000 0.000 0.264 0.736 0.000 0.000 0.000 0.379 0.355 0.266 0.000 0.000 "
        "0.432 0.071 0.146 0.351 0.000 0.100 0.254 0.255 0.326 0.065", SEED_3,
    ),
    _bound("S53.is_causal", "ours - library, is_causal", "1.5e-07", 1e-6),
    _bound("S53.attn_mask", "ours - library, attn_mask", "1.5e-07", 1e-6),
    _golden(
        "S61", "masked after the softmax: weights",
        "0.119 0.000 0.000 0.000 0.000 0.137 0.383 0.000 0.000 0.000 0.234 0.219 0.164 0.000 0.000 "
        "0.413 0.068 0.139 0.335 0.000 0.100 0.254 0.255 0.326 0.065", SEED_3,
    ),
    _golden("S62", "masked after the softmax: row sums", "0.119 0.520 0.617 0.955 1.000", SEED_3),
    _golden("S63", "zero-fill: weight on the future", "0.832 0.456 0.391 0.193 0.000", SEED_3),
    _golden("S64.rows", "after-softmax: the only right row", "5", SEED_3),
    _claim("S64.leak", "the shrink leaks the future", "C15-C18"),
)  # fmt: skip

RELEASED = (
    _released("S33", "d_model, heads, d_k, d_v, layers", "512 8 64 64 6 6"),
    Printed("S34.released", "its four projections", Kind.released, Shapes(((512, 512),) * 4)),
    _released("S35.released", "parameters of its block", "1050624"),
    Printed(
        "S36", "source tokens", Kind.released,
        Text("▁The ▁cat ▁sat ▁on ▁the ▁mat ▁because ▁it ▁was ▁tired . </s>"),
    ),
    Printed(
        "S37", "greedy translation", Kind.released, Text("Die Katze saß auf der Matte, weil sie müde war.")
    ),
    _released_bound("S39.difference", "rebuilt with the library's projections", "0.0e+00", 1e-5),
    _released("S40", "source, decoder input tokens", "12 14"),
    _released_bound("S41.difference", "encoder block, ours - library", "1.5e-06", 1e-5),
    _released(
        "S42", "layer 1, 'it': top two keys a head",
        "▁tired 0.75 </s> 0.08 ▁it 0.20 ▁tired 0.19 </s> 0.60 ▁the 0.10 ▁was 0.33 ▁mat 0.17 "
        "</s> 0.41 ▁the 0.18 </s> 0.19 ▁tired 0.18 </s> 0.26 . 0.20 ▁was 0.68 </s> 0.09",
    ),
    Printed(
        "S43.tokens", "decoder input", Kind.released,
        Text("<pad> ▁Die ▁Katze ▁saß ▁auf ▁der ▁Matt e , ▁weil ▁sie ▁müde ▁war ."),
    ),
    _released(
        "S44", "cross, layer 3, mean of heads: top key",
        "▁Die ▁The 0.31 ▁Katze ▁cat 0.25 ▁saß </s> 0.37 ▁auf ▁on 0.31 ▁der ▁the 0.26 ▁Matt ▁mat 0.43 e ▁mat 0.27 "
        ", ▁because 0.55 ▁weil </s> 0.27 ▁sie ▁it 0.30 ▁müde ▁tired 0.33 ▁war </s> 0.37 . . 0.52",
    ),
    _released_bound("S45.difference", "cross block, ours - library", "1.2e-05", 1e-4),
    _released("S46", "largest outputs: encoder, decoder, cross", "4.3 8.0 26.2"),
    _released("S47", "cross, layer 1, 'Katze', mean of heads", "</s> 0.64 ▁cat 0.15 . 0.05"),
    _released_bound("S54.released", "its weight above the diagonal: max", "0.0e+00", 0.0),
    _released(
        "S55", "decoder, last layer, mean of heads, 5 x 5",
        "1.00 0.00 0.00 0.00 0.00 0.59 0.41 0.00 0.00 0.00 0.63 0.04 0.32 0.00 0.00 "
        "0.53 0.04 0.12 0.31 0.00 0.52 0.06 0.06 0.12 0.25",
    ),
    _released_bound("S56.difference", "decoder block, ours - library", "3.3e-06", 2e-5),
    _released("S57", "top weight of 'it', head 1: with, without scale", "0.75 1.00"),
    _released("S58", "no scale: largest weight of any row", "0.866 1.000"),
    _released("S59", "no scale: output - library", "3.36"),
    _claim("S60", "a new model without the scale trains badly", "C04, C06"),
    _released("S65.difference", "wrong split: output - library", "3.84"),
    _released("S66.difference", "wrong merge: output - library", "4.57"),
    _released_bound("S67", "right split and merge: output - library", "1.5e-06", 1e-5),
)  # fmt: skip
