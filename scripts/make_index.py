#!/usr/bin/env python3
"""Writes results/index.html: links to every table and figure in results/, with the first sentence of each.

    scripts/make_index.py [RESULTS]
"""

from __future__ import annotations

import html
import re
import sys
from pathlib import Path

STYLE = """:root { color-scheme: light dark; }
body { margin: 0 auto; max-width: 60rem; padding: 1.2rem .8rem 3rem; font: 1rem/1.5 system-ui, sans-serif; overflow-wrap: break-word; }
li { margin: .3rem 0; } img { max-width: 100%; height: auto; background: #fff; }
nav a, li a { display: inline-block; padding: .2rem 0; }"""

NAMES = {
    "summary.md": "tables",
    "README.md": "table and conclusion",
    "summary.txt": "figures in text",
    "report.html": "report with pictures",
    "loglik.csv": "scores",
    "table.csv": "table for programs",
    "table.tex": "table for LaTeX",
    "times.csv": "times",
}


def conclusion(folder: Path) -> str:
    """The sentence of a track, or how the table was made."""
    for name in ("README.md", "summary.md", "summary.txt"):
        path = folder / name
        if path.is_file():
            lines = [line.strip() for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
            if name == "README.md" and len(lines) > 1:
                return lines[1]
            made = [line for line in lines if line.lower().startswith("made by")]
            return made[-1].replace("`", "") if made else ""
    return ""


def title(folder: Path, root: Path) -> str:
    name = str(folder.relative_to(root))
    return re.sub(r"^(table|figure)(\d)$", lambda found: f"{found[1].capitalize()} {found[2]} of the paper", name)


def section(folder: Path, root: Path) -> str:
    links = [(path, NAMES[path.name]) for path in sorted(folder.iterdir()) if path.name in NAMES]
    pictures = sorted(folder.glob("plots/*.svg"))
    if not links and not pictures:
        return ""
    at = lambda path: html.escape(path.relative_to(root).as_posix())  # noqa: E731
    parts = [f"<h2>{html.escape(title(folder, root))}</h2>", f"<p>{html.escape(conclusion(folder))}</p>", "<ul>"]
    parts += [f'<li><a href="{at(path)}">{what}</a></li>' for path, what in links]
    parts.append("</ul>")
    if pictures:
        named = " · ".join(f'<a href="{at(path)}">{html.escape(path.stem)}</a>' for path in pictures)
        parts.append(f"<details><summary>{len(pictures)} figures</summary><p>{named}</p></details>")
    return "\n".join(parts)


def page(root: Path) -> str:
    folders = [folder for folder in [root, *sorted(root.rglob("*"))] if folder.is_dir() and folder.name != "plots"]
    sections = [section(folder, root) for folder in folders if folder != root]
    others = "".join(
        f'<li><a href="{html.escape(path.name)}">{html.escape(path.name)}</a></li>'
        for path in sorted(root.glob("*.md")) + sorted(root.glob("*.json"))
    )
    sections.append(f"<h2>Other results</h2>\n<ul>{others}</ul>" if others else "")
    body = "\n".join(part for part in sections if part)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
        "img-src 'self' file: data:; base-uri 'none'; form-action 'none'\">\n"
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n<title>Results of gmm-bmm</title>\n'
        f"<style>\n{STYLE}\n</style>\n</head>\n<body>\n<h1>Results of gmm-bmm</h1>\n"
        "<p>All tables and figures in this folder. METHODOLOGY.md says how they are measured; each table says which version "
        "and command made it.</p>\n"
        f"{body}\n</body>\n</html>\n"
    )


if __name__ == "__main__":
    results = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).resolve().parents[1] / "results")
    if not results.is_dir():
        sys.exit(f"'{results}' is not a folder of results")
    (results / "index.html").write_text(page(results), encoding="utf-8")
    print(results / "index.html")
