"""What an audit prints and saves: the schema, the terminal, the page, the figures, the command line and its exit codes."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from importlib.resources import files
from types import MappingProxyType
from xml.etree import ElementTree

import jsonschema
import numpy as np
import pytest
from click.testing import CliRunner
from recordings import make_blocks, record
from rich.console import Console

from spectheory import AuditReport, DataError, audit, logits
from spectheory.audit import html, text
from spectheory.cli import main
from spectheory.results import Interval
from spectheory.verifiers import Nucleus, Standard, example

SCHEMA = json.loads(files("spectheory.audit").joinpath("report.schema.json").read_text())


@pytest.fixture(scope="module")
def report():
    """NSD on the embedded sample, with a claim."""
    return audit.run(Nucleus(0.9), max_deviation=0.02)


def cli(*args):
    return CliRunner().invoke(main, [str(a) for a in args])


def printed(report, width=120):
    console = Console(width=width, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    text.print_report(report, console)
    console.file.close()
    return console.export_text()


# The schema.


def test_schema_is_a_schema():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


def reports():
    yield audit.run(Standard(), make_blocks(3))
    yield audit.run(Nucleus(0.9), make_blocks(3), max_deviation=0.1)
    yield audit.run(example("typical"), make_blocks(3), request={"top_k": 5})
    yield audit.run(Standard(), [make_blocks(1)[0], make_blocks(1)[0].__class__([1])])
    yield audit.run(example("block"), make_blocks(3))
    yield audit.compare([Standard(), Nucleus(0.9)], make_blocks(3))


def test_every_kind_of_report_follows_the_schema_and_comes_back():
    for report in reports():
        data = json.loads(report.dumps())
        jsonschema.validate(data, SCHEMA, cls=jsonschema.Draft202012Validator)
        assert AuditReport.from_json(data).to_json() == report.to_json()


@pytest.mark.parametrize(
    "spoil",
    [
        lambda d: d.pop("verdict"),
        lambda d: d["summary"]["deviation"].pop("on_data"),
        lambda d: d["summary"]["deviation"]["on_data"].update(kind="guessed"),
        lambda d: d.update(verdict="fine"),
        lambda d: d["errors"].append({"shard": "a"}),
        lambda d: d["sweep"][0].pop("acceptance"),
    ],
)
def test_the_schema_refuses_what_is_wrong(report, spoil):
    data = json.loads(report.dumps())
    spoil(data)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(data, SCHEMA, cls=jsonschema.Draft202012Validator)


# The terminal.


def test_the_terminal_report_says_what_matters(report):
    out = printed(report)
    for expected in (
        "nsd(top_p=0.9)",
        "embedded sample; 32 rows, 8 blocks, 8 requests",
        "REFUTED: mean one-step deviation <= 0.02",
        "the standard rule: 66.5 %",
        "deviation TV(emitted, target)",
        "population, 95 %",
        "model (rounding)",
        "rows of one request are dependent",
        "Sweep over top_p",
        "Worst rows",
        "drafts follow the declared q: not refuted",
    ):
        assert expected in out, expected
    mean = report.summary["deviation"]["on_data"].upper
    assert f"{mean:.4g}" in out
    assert "nan" not in out.lower()


def test_sections_of_special_audits_are_shown(report):
    section = {"title": "Regret", "columns": ["rule", "spent"], "rows": [["asd", 1.25]], "notes": ["in nats"]}
    extended = AuditReport.from_json(
        {**json.loads(report.dumps()), "extra": {**report.to_json()["extra"], "sections": [section]}}
    )
    assert re.search(r"Regret.*asd\s+1\.25.*in nats", printed(extended), re.DOTALL)
    assert "<h2>Regret</h2>" in html.page(extended)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "-"),
        (0.0, "0"),
        (1e-17, "0"),
        (0.123456, "0.1235"),
        (float("inf"), "inf"),
        (1234567, "1,234,567"),
        ("x", "x"),
    ],
)
def test_numbers(value, shown):
    assert text.number(value) == shown


def test_intervals():
    assert text.interval(Interval.exact(0.25)) == "0.25"
    assert text.interval(Interval(0.1, None, 0.2, "certified")) == "[0.1, 0.2]"
    assert text.interval(Interval(0.1, 0.15, 0.2, "statistical", 0.05)) == "0.15 in [0.1, 0.2]"


# The page.


class Balanced(HTMLParser):
    """Every element is closed, and nothing is fetched."""

    VOID = frozenset({"meta", "br", "path", "use", "rect", "line", "circle"})

    def __init__(self):
        super().__init__()
        self.open, self.fetched, self.ids = [], [], []

    def handle_starttag(self, tag, attrs):
        if tag not in self.VOID:
            self.open.append(tag)
        attrs = dict(attrs)
        self.fetched += [v for k, v in attrs.items() if k in ("src", "href", "xlink:href") and not v.startswith("#")]
        self.ids += [attrs["id"]] if "id" in attrs else []

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in self.VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        if tag not in self.VOID:
            assert self.open.pop() == tag


def test_the_page_is_self_contained(report, tmp_path):
    audit.write(report, tmp_path)
    page = (tmp_path / "report.html").read_text()
    parser = Balanced()
    parser.feed(page)
    assert parser.open == []
    assert parser.fetched == []
    assert len(parser.ids) == len(set(parser.ids))
    assert page.count("<svg") == 3
    assert 'name="viewport"' in page
    assert "<script" not in page
    assert "@import" not in page
    for used in re.findall(r'(?:xlink:href="|url\()#([^")]+)', page):
        assert used in parser.ids


def test_hostile_token_texts_are_escaped():
    class Source(list):
        manifest = MappingProxyType({})
        texts = dict.fromkeys(range(60), "<script>alert(1)</script>")

    page = html.page(audit.run(Nucleus(0.9), Source(make_blocks(2))))
    assert "<script>" not in page
    assert "&lt;script&gt;" in page


# Files and figures.


def test_everything_is_saved(report, tmp_path):
    paths = audit.write(report, tmp_path / "out")
    names = {p.name for p in paths}
    assert {"report.json", "rows.npz", "report.html"} <= names
    for stem in ("plane", "sweep", "rows"):
        assert {f"{stem}.svg", f"{stem}.pdf", f"{stem}.json"} <= names
    assert names == {p.name for p in (tmp_path / "out").iterdir()}
    with np.load(tmp_path / "out" / "rows.npz") as rows:
        assert set(rows.files) == set(report.rows)
        assert rows["deviation"].mean() == pytest.approx(report.summary["deviation"]["on_data"].upper)
    data = json.loads((tmp_path / "out" / "plane.json").read_text())
    assert data["points"][0]["deviation"] == report.summary["deviation"]["on_data"].upper


def test_figures_are_the_same_bytes_each_time(report, tmp_path):
    for name in ("a", "b"):
        audit.write(report, tmp_path / name)
    for path in (tmp_path / "a").iterdir():
        assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes(), path.name
    for path in (tmp_path / "a").glob("*.svg"):
        ElementTree.parse(path)


def test_a_report_without_matplotlib(report, tmp_path, monkeypatch):
    monkeypatch.setattr("spectheory.audit.save.find_spec", lambda name: None)
    assert {p.name for p in audit.write(report, tmp_path)} == {"report.json", "rows.npz", "report.html"}
    assert "<svg" not in (tmp_path / "report.html").read_text()


def test_a_disk_that_fills_up_names_the_file_and_keeps_what_was_there(report, tmp_path, monkeypatch):
    audit.write(report, tmp_path)
    before = {p.name: p.read_bytes() for p in tmp_path.iterdir()}

    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez_compressed", full)
    with pytest.raises(DataError, match=r"rows\.npz: cannot write: No space left on device"):
        audit.write(audit.run(Nucleus(0.9), max_deviation=0.02), tmp_path)
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == before


def test_worst_rows_are_the_worst_and_speak(report):
    deviations = [w["deviation"] for w in report.worst_rows]
    assert deviations == sorted(report.rows["deviation"].tolist(), reverse=True)[:10]
    texts = logits.sample().texts
    for row in report.worst_rows:
        assert row["context"]
        for token in (row["drafted"], row["target_top"], *row["gained"], *row["lost"]):
            assert token["text"] == texts.get(token["id"])
        assert row["drafted"]["text"] is not None


# The command line.


def test_exit_codes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = record(tmp_path / "rec", n=10)
    assert cli("audit", "standard", "--logits", path, "--max-deviation", 0).exit_code == 0
    assert cli("audit", "nsd", "--set", "top_p=0.9", "--logits", path, "--max-deviation", 0).exit_code == 1
    for wrong in (
        ["audit", "nope"],
        ["audit", "nsd"],
        ["audit", "nsd", "--set", "top_p"],
        ["audit", "nsd", "--set", "top_p=2"],
        ["audit", "my:rule"],
        ["audit", "block", "--max-deviation", 0],
        ["audit", "block", "--top-k", 5],
        ["compare", "block"],
        ["audit", "standard", "--logits", path, "--top-k", 0],
        ["audit", "standard", "--logits", path, "--max-deviation", 2],
        ["audit", "standard", "--logits", path, "--block", 0],
        ["audit", "standard", "--nonsense"],
        ["compare", "nsd(top_p=0.9"],
        ["compare"],
    ):
        assert cli(*wrong).exit_code == 2, wrong
    assert cli("audit", "standard", "--logits", tmp_path / "none").exit_code == 4
    shard = path / logits.read(path).shards[0]
    shard.write_bytes(shard.read_bytes()[:-3])
    bad = cli("audit", "standard", "--logits", path)
    assert bad.exit_code == 4
    assert "shard-00000.safetensors" in bad.output.replace("\n", "")


def test_json_and_files(tmp_path):
    path = record(tmp_path / "rec", n=10)
    done = cli(
        "audit", "nsd", "--set", "top_p=0.8", "--logits", path, "--json", "--out", tmp_path / "out", "--block", 2
    )
    data = json.loads(done.stdout)
    assert data["summary"]["tokens_per_call"]["block"] == 2
    assert data == json.loads((tmp_path / "out" / "report.json").read_text())
    assert "wrote" in done.stderr


def test_a_rule_of_the_users_own(tmp_path, monkeypatch):
    """pkg.module:Class, importable from the working directory, with settings."""
    name = f"my_rule_{tmp_path.name}"
    (tmp_path / f"{name}.py").write_text(
        "from spectheory.pmf import residual\n"
        "class Rule:\n"
        "    def __init__(self, share=0.5): self.share = share\n"
        "    def acceptance(self, p, q): return self.share + 0 * q\n"
        "    def residual(self, p, q): return residual(p, q)\n"
    )
    monkeypatch.chdir(tmp_path)
    done = cli("audit", f"{name}:Rule", "--set", "share=0.25", "--json")
    data = json.loads(done.stdout)
    assert data["verifier"]["title"] == "Rule(share=0.25)"
    assert data["summary"]["acceptance"]["on_data"]["upper"] == pytest.approx(0.25)
    assert cli("audit", f"{name}:Other").exit_code == 2
    assert cli("audit", f"{name}:Rule", "--set", "size=1").exit_code == 2
