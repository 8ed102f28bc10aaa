"""The arguments of the command that is about dialogues; light at import, as ``cli`` is."""

from __future__ import annotations

from cheesebench.arguments import Command, add_output


def add_cogeval_stats(command: Command) -> None:
    """Add ``cogeval-stats``."""
    parser = command(
        "cogeval-stats",
        "say what dialogues came to, as the CogEval paper does",
        "Which factors make the difference (analysis of deviance),\nmeans by condition and graph, ways of failing. "
        "Of runs, or of a CSV table of scores.",
        "20250131-093000-ab12 --published gpt-4-32k",
        "first second --figures figures",
        "--scores scores.csv --json",
    )
    parser.add_argument("runs", nargs="*", metavar="RUN", help="the id of a run, its directory, or its run.sqlite")
    parser.add_argument("--results", metavar="DIR", default="results", help="where the runs are (default: results)")
    columns = "graph, domain, condition, model, temperature, successes, total"
    parser.add_argument("--scores", metavar="CSV", help=f"a table with the columns {columns}")
    parser.add_argument("--model", metavar="NAME", action="append", help="only this model, repeatable (default: all)")
    parser.add_argument(
        "--published",
        metavar="NAME",
        action="append",
        help="compare with this model of the paper's Table 3, repeatable",
    )
    parser.add_argument("--margin", metavar="X", type=float, default=0.10, help="of that comparison (default: 0.1)")
    parser.add_argument("--figures", metavar="DIR", help="also draw figures by graph and condition, as SVG")
    parser.add_argument("--json", action="store_true", help="print JSON for programs")
    add_output(parser)
