"""Theorem blocks written by the register, with the status that the last run of the ledger gave each claim.

In a page's Markdown, a fence "```{claim} N1" becomes the block of claim N1, and the role {claim}`N1` a link to it.
Claims that no page places follow at the end of their family's page. "```{claim-table}" becomes the table of all,
"```{claim-table} false" that of the false ones.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from ledger_run import Outcome, outcomes

from spectheory import CheckResult, ledger
from spectheory.theory.registry import Theorem, theorems

DOCS = Path(__file__).parents[1]
BIBLIOGRAPHY, THEORY = DOCS / "refs.bib", DOCS / "theory"
PAGES = {"S": "standard", "N": "nsd", "L": "lenience", "V": "lossy", "Q": "sequence", "A": "asd", "E": "ersd"}
PICTURES = {
    "standard": "01_tour",
    "nsd": "02_nsd",
    "lenience": "02_nsd",
    "sequence": "03_sequence",
    "asd": "04_asd",
    "ersd": "05_ersd",
}
READS = {"=": "equals", "<=": "is at most", ">=": "is at least"}
FENCE = re.compile(r"^```\{claim\} (\S+)\n```$", re.MULTILINE)
ROLE = re.compile(r"\{claim\}`([^`]+)`")
TABLE = re.compile(r"^```\{claim-table\}(?: (\w+))?\n```$", re.MULTILINE)


@cache
def _placements() -> dict[str, str]:
    """The page that places each claim, by id."""
    return {id: path.stem for path in THEORY.glob("*.md") for id in FENCE.findall(path.read_text(encoding="utf-8"))}


def page(claim: Theorem) -> str:
    """The theory page of a claim, say `nsd`: the one that places it, else that of its family."""
    return _placements().get(claim.id) or PAGES[claim.family]


def slug(id: str) -> str:
    return "claim-" + re.sub(r"[^a-z0-9]+", "-", id.lower())


def plain(text: str) -> str:
    """Plain text of the register as Markdown: what would be markup is escaped, formulas in $...$ are left alone."""
    pieces = re.split(r"(\$[^$]+\$)", text)
    return "".join(x if i % 2 else re.sub(r"([\\*_<>|~^`\[\]{}])", r"\\\1", x) for i, x in enumerate(pieces))


def cited(source: str) -> str:
    """The register's source with every arXiv number that the bibliography knows turned into a citation."""
    known = set(re.findall(r"^@\w+\{([^,]+),", BIBLIOGRAPHY.read_text(encoding="utf-8"), re.MULTILINE))
    number = re.compile(r"(?:arXiv:)?(\d{4}\.\d{4,5})(?:v\d+)?")
    return number.sub(lambda m: f"{{cite:p}}`{m[1]}`" if m[1] in known else m[0], plain(source))


def readable(witness: str) -> str:
    """An instance on one line, as code, with 1/2 for Fraction(1, 2) and bare brackets for arrays."""
    text = " ".join(witness.split()).replace("`", "'")
    text = re.sub(r"Fraction\((-?\d+), (\d+)\)", lambda m: m[1] if m[2] == "1" else f"{m[1]}/{m[2]}", text)
    return "`" + re.sub(r"array\(([^()]*?)(?:, dtype=\w+)?\)", r"\1", text) + "`"


def tried(run: CheckResult) -> str:
    """What a run tried: searched instances, and the fixed ones beside them."""
    fixed = [(run.golden, "published"), (run.families, "synthetic"), (run.recorded, "recorded")]
    beside = ", ".join(f"{n} {word}" for n, word in fixed if n)
    return f"{run.examples} searched instances (seed {run.seed})" + (f" and {beside} ones" if beside else "")


def status(claim: Theorem, outcome: Outcome | None) -> tuple[str, str]:
    """(word, sentence) of what the last run found: the word is held, refuted, failed, reported or unchecked."""
    if outcome is None:
        return "unchecked", "no check is registered"
    run = outcome.result
    if not run.ok:
        cause = run.error or ("no violation was found" if claim.status == "false" else f"worst gap {run.worst:.3g}")
        where = f", on {readable(run.witness)}" if run.witness else ""
        return "failed", f"{plain(cause)}{where}; {tried(run)}"
    if claim.status == "false":
        return "refuted", f"violated by {readable(run.witness)}, the smallest instance reached; {tried(run)}"
    if claim.status == "report":
        return "reported", f"a figure, not a claim; its two routes agree on {tried(run)}"
    return "held", f"on {tried(run)}"


def mutation(claim: Theorem, outcome: Outcome) -> str:
    """What became of the claim's wrong formula: a check that cannot fail is a defect, and is said to be one."""
    if outcome.mutated.ok:
        return "**not noticed: this check is defective**"
    if claim.status == "false":
        return "the formula that replaces it is not violated"
    return f"caught, by {readable(outcome.mutated.witness)}"


def check_source(claim: Theorem) -> str:
    """The statement of the ledger that declares how the claim is checked, after the helper that it calls, if it does."""
    for name in ledger.checks.FAMILIES:
        text = Path(str(import_module(f"spectheory.ledger.{name}").__file__)).read_text(encoding="utf-8")
        body = ast.parse(text).body
        helpers = {node.name: node for node in body if isinstance(node, ast.FunctionDef)}
        for statement in body:
            inside = list(ast.walk(statement))
            if any(isinstance(node, ast.Constant) and node.value == claim.id for node in inside):
                called = {
                    node.func.id for node in inside if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
                }
                parts = [*(helpers[name] for name in sorted(called & set(helpers)) if "check" in name), statement]
                return "\n\n\n".join(ast.get_source_segment(text, part) or "" for part in parts)
    return ""


def block(claim: Theorem, outcome: Outcome | None) -> str:
    """The Markdown of one claim."""
    kind = {"false": "conjecture", "report": "observation"}.get(claim.status, "theorem")
    word, sentence = status(claim, outcome)
    function = f"{claim.closed_form.__module__}.{claim.closed_form.__qualname__}"
    lines = [
        f"({slug(claim.id)})=",
        f"````{{prf:{kind}}} {claim.id}",
        f":label: block-{slug(claim.id)}",
        ":nonumber:",
        "",
        "$$",
        claim.statement,
        "$$",
        "",
        f"- Hypotheses: {plain(claim.hypotheses)}",
        f"- Source: {cited(claim.source)}",
        f"- Computed by: {{py:func}}`{function}`; the second route {READS[claim.relation]} it",
        f"- Last run: [{word}]{{.claim-{word}}}, {sentence}",
    ]
    if claim.status == "false":
        lines += [f"- Counterexample: {plain(claim.counterexample)}", f"- What holds: {plain(claim.replacement)}"]
    if outcome is not None:
        lines.append(f"- Wrong formula in its place: {mutation(claim, outcome)}")
        second = ledger.CHECKS[claim.id].second
        lines.append(f"- Second route: in `{getattr(second, 'func', second).__module__}`")
    source = check_source(claim)
    if source:
        lines += ["", ":::{admonition} How it is checked", ":collapsible: closed", "```python", source, "```", ":::"]
    return "\n".join([*lines, "````", ""])


def table(found: Mapping[str, Outcome], kind: str | None = None) -> str:
    """All claims, or those registered with status `kind`, a row each."""
    rows = ["| claim | last run | page | statement |", "|---|---|---|---|"]
    for claim in theorems().values():
        if kind not in (None, claim.status):
            continue
        word, _ = status(claim, found.get(claim.id))
        link = f"[{claim.id}](#{slug(claim.id)})"
        statement = " ".join(claim.statement.replace(r"\|", r"\Vert ").replace("|", r"\vert ").split())
        rows.append(
            f"| {link} | [{word}]{{.claim-{word}}} | [{page(claim)}](/theory/{page(claim)}.md) | ${statement}$ |"
        )
    return "\n".join(rows)


def expand(name: str, text: str, found: Mapping[str, Outcome]) -> str:
    """The page `name` (say theory/nsd) with its claims filled in. Raises KeyError for a claim nobody registered."""
    known = theorems()
    placed = set(FENCE.findall(text))
    text = FENCE.sub(lambda m: block(known[m[1]], found.get(m[1])), text)
    text = ROLE.sub(lambda m: f"[{known[m[1]].id}](#{slug(m[1])})", text)
    text = TABLE.sub(lambda m: table(found, m[1]), text)
    if name.startswith("theory/"):
        notebook = PICTURES.get(name.removeprefix("theory/"))
        if notebook:
            text = re.sub(r"\A(# .*\n)", rf"\1\nIn pictures: [tutorial](/tutorials/{notebook}.ipynb).\n", text)
        left = [c for c in known.values() if f"theory/{page(c)}" == name and c.id not in placed]
        if left:
            heading = "## The claims as the ledger states and checks them" if not placed else "## Further claims"
            text += "\n\n" + "\n".join([heading, "", *(block(c, found.get(c.id)) for c in left)])
    return text


def _start(app: Any) -> None:
    ledger.load()
    app.claim_outcomes = outcomes(Path(app.outdir).parent / "ledger.json", app.config.claims_examples)


def _read(app: Any, name: str, source: list[str]) -> None:
    if not name.startswith("tutorials/0"):
        source[0] = expand(name, source[0], app.claim_outcomes)


def _always(app: Any, env: Any, added: set[str], changed: set[str], removed: set[str]) -> list[str]:
    """Pages that show a status are read again at every build."""
    return [name for name in env.found_docs if name.startswith("theory/") or name == "stumbling"]


def setup(app: Any) -> dict[str, bool]:
    app.add_config_value("claims_examples", 100, "env")
    app.connect("builder-inited", _start)
    app.connect("source-read", _read)
    app.connect("env-get-outdated", _always)
    return {"parallel_read_safe": False}
