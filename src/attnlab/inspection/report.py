"""`attnlab inspect` on a terminal and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from attnlab.config import Site
from attnlab.inspection.alignment import Agreement
from attnlab.inspection.antecedent import Antecedents
from attnlab.inspection.gold import Alignments, Gold, Reading
from attnlab.inspection.views import TokenWeight, View

USES = {
    Site.encoder: "source by source",
    Site.decoder: "target by target",
    Site.cross: "target by source",
}


def as_text(view: View, gold: Gold | None) -> str:
    """Headed blocks with an empty line between them."""
    blocks = [
        [view.run, f"source       {view.source}", f"translation  {view.translation or '(empty)'}"],
        ["tokens", *_tokens(view)],
        ["the three uses of attention, layer 1", *_uses(view)],
        [f"encoder, layer 1, query '{view.query}': keys with the most weight, per head", *_top_keys(view)],
        [
            "cross-attention, mean of heads: source token with the most weight, per target token",
            *_cross(view),
        ],
        [f"decoder, layer {len(view.layers(Site.decoder))}, mean of heads: first rows", *_decoder(view)],
    ]
    if view.not_tokens:
        blocks.append([f"This arm splits heads wrongly: a row is no token at {', '.join(view.not_tokens)}."])
    if gold is not None:
        blocks += [list(_alignments(gold.alignments)), list(_antecedents(gold))]
    return "\n\n".join("\n".join(block) for block in blocks)


def as_json(view: View, gold: Gold | None) -> str:
    """One object with what `as_text` shows, numbers unrounded; `gold` is null off the grammar corpus."""
    shown = {
        "run": view.run,
        "source": view.source,
        "translation": view.translation,
        "tokens": {"source": view.source_tokens, "target": view.target_tokens},
        "shapes": view.shapes(),
        "query": {"word": view.query, "positions": view.query_rows, "top_keys": view.top_keys()},
        "alignment": [
            {"query": query, "next": following, "layers": best}
            for query, following, *best in zip(view.target_tokens, view.next_tokens, *view.alignment(), strict=True)
        ],
        "decoder_table": view.decoder_table().tolist(),
        "rows_are_no_tokens": view.not_tokens,
        "gold": None if gold is None else {
            "alignments": _alignments_plain(gold.alignments),
            "antecedents": _antecedents_plain(gold.antecedents),
            "no_antecedents": gold.no_antecedents,
        },
    }  # fmt: skip
    return json.dumps(shown, ensure_ascii=False, indent=1)


def columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows of cells as indented lines, each column as wide as its longest cell."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def _tokens(view: View) -> list[str]:
    sides = {"source": view.source_tokens, "target": view.target_tokens}
    return columns([[side, str(len(tokens)), " ".join(tokens)] for side, tokens in sides.items()])


def _uses(view: View) -> list[str]:
    shapes = view.shapes()
    head = ["", "queries by keys", "q", "k", "v", "weights [batch, heads, queries, keys]"]
    return columns([head, *([site, use, *map(str, shapes[site].values())] for site, use in USES.items())])


def _top_keys(view: View) -> list[str]:
    return columns([[f"head {h}", *map(_pair, keys)] for h, keys in enumerate(view.top_keys(), start=1)])


def _cross(view: View) -> list[str]:
    layers = view.alignment()
    head = ["query", "then", *(f"layer {i}" for i in range(1, len(layers) + 1))]
    rows = zip(view.target_tokens, view.next_tokens, *layers, strict=True)
    return columns([head, *([query, following, *map(_pair, row)] for query, following, *row in rows)])


def _decoder(view: View) -> list[str]:
    table = view.decoder_table().tolist()
    tokens = view.target_tokens[: len(table)]
    return columns(
        [["", *tokens], *([token, *map(_weight, row)] for token, row in zip(tokens, table, strict=True))]
    )


def _pair(key: TokenWeight) -> str:
    return f"{key[0]} {float(key[1]):.2f}"


def _weight(weight: float) -> str:
    return f"{weight:.2f}"


def _percent(share: float) -> str:
    return f"{100 * share:.1f}%"


def _alignments(found: Alignments) -> Iterator[str]:
    yield f"alignment error rate of the cross-attention's argmax, {found.sentences} dev sentences (0% is perfect)"
    head = ["", "row: word is input", "row: word is predicted", "words without a link (input, predicted)"]
    rows = [
        [f"layer {i}", *(_percent(found.layers[reading][i - 1].aer) for reading in Reading),
         ", ".join(_percent(found.unlinked(reading)[i - 1]) for reading in Reading)]
        for i in range(1, len(found.layers[Reading.input]) + 1)
    ]  # fmt: skip
    yield from columns([head, *rows])
    yield (
        f"  chance {_percent(found.uniform.aer)} (any word), diagonal {_percent(found.diagonal.aer)} "
        f"(same place in the sentence), best {_percent(found.best.aer)} (one link a word)"
    )


def _antecedents(gold: Gold) -> Iterator[str]:
    found = gold.antecedents
    if found is None:
        yield f"'it' and its antecedent: not measured, {gold.no_antecedents}"
        return
    yield f"'it' looks at its antecedent, encoder, {found.rows} rows: share of rows where no content word has more weight (mean weight)"
    layers, heads = found.share.shape
    head = ["", *(f"head {h}" for h in range(1, heads + 1))]
    pairs = zip(found.share.tolist(), found.weight.tolist(), strict=True)
    rows = [
        [f"layer {i}", *(f"{_percent(s)} ({w:.3f})" for s, w in zip(share, weight, strict=True))]
        for i, (share, weight) in enumerate(pairs, start=1)
    ]
    yield from columns([head, *rows])
    yield (
        f"  chance {_percent(found.chance_share)} +- {_percent(found.chance_share_sd)} (sd of one head; {layers * heads} "
        f"heads are looked at) for a content word at random, ({found.chance_weight:.3f}) for equal weights"
    )


def _alignments_plain(found: Alignments) -> dict[str, object]:
    def plain(agreement: Agreement) -> dict[str, float]:
        return {
            "aer": agreement.aer,
            "agreed": agreement.agreed,
            "found": agreement.found,
            "gold": agreement.gold,
        }

    return {
        "sentences": found.sentences,
        "target_words": found.words,
        "layers": {reading: [plain(layer) for layer in layers] for reading, layers in found.layers.items()},
        "chance": {name: plain(getattr(found, name)) for name in ("uniform", "diagonal", "best")},
    }


def _antecedents_plain(found: Antecedents | None) -> dict[str, object] | None:
    if found is None:
        return None
    return {
        "rows": found.rows,
        "share": found.share.tolist(),
        "weight": found.weight.tolist(),
        "chance_share": found.chance_share,
        "chance_share_sd": found.chance_share_sd,
        "chance_weight": found.chance_weight,
    }
