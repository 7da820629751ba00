"""Builds the documentation site into target/site: pages of this folder, the reference of the command from its help, that of the
Python package from its docstrings, and the library's from rustdoc.

    scripts/make_site.py --command target/release/gmm-bmm --rustdoc target/doc

'make docs' installs what it needs and calls it. The build fails on any warning, such as a link without a target.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "target/site-source"
# Pages of the repository that are pages of the site, under the same paths.
PAGES = ["METHODOLOGY.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "python/README.md", "datasets/README.md",
         "docs/*.md", "results/*/README.md", "results/*.md", "results/*/summary.md", "results/tracks/*/README.md"]
EXAMPLES = ROOT / "python/examples"


def pages():
    found = {path.relative_to(ROOT).as_posix() for pattern in PAGES for path in ROOT.glob(pattern)}
    return {"README.md": "index.md", **{path: path for path in sorted(found)}}


def on_site(text, path, known, used):
    """A page's text whose links lead to the site. A link to a file that is no page becomes the file's name."""
    folder = Path(path).parent

    def target(link):
        file, _, anchor = link.partition("#")
        return os.path.normpath(folder / file).replace(os.sep, "/"), f"#{anchor}" if anchor else ""

    def replace(match):
        bang, words, link = match.groups()
        if "://" in link or link.startswith(("#", "mailto:")):
            return match.group(0)
        file, anchor = target(link)
        page = next((known[name] for name in (file, f"{file}/README.md") if name in known), None)
        if page is None and bang:
            used.add(file)
            page = file
        if page is None:
            return words
        return f"{bang}[{words}]({os.path.relpath(page, Path(known[path]).parent or '.')}{anchor})"

    parts = re.split(r"(^```.*?^```$)", text, flags=re.M | re.S)
    link = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")
    return "".join(part if part.startswith("```") else link.sub(replace, part) for part in parts)


def write(path, text):
    file = SOURCE / "pages" / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def paragraphs(lines):
    """Lines of a help text as Markdown: wrapped lines are joined, and lists stay lists."""
    text, parts = [], []
    for line in [*lines, ""]:
        line = line.strip()
        if line.startswith("- "):
            text and parts.append(" ".join(text))
            text = [line.replace(":", "`:", 1).replace("- ", "- `", 1) if ":" in line else line]
        elif line:
            text.append(line)
        elif text:
            parts.append(" ".join(text))
            text = []
    out = "\n\n".join(parts).replace("<", "&lt;").replace("*", "\\*")
    return re.sub(r"(^- .*\n)\n(?=- )", r"\1", out, flags=re.M)


def commands(program):
    """The names of the commands, from the program's help."""
    help_text = subprocess.run([program, "--help"], capture_output=True, text=True, check=True).stdout
    listed = help_text.split("Commands:\n", 1)[1].split("\n\n", 1)[0]
    return [name for name in re.findall(r"^  (\w+)", listed, re.M) if name != "help"]


def command_page(program, command):
    help_text = subprocess.run([program, "help", command], env={**os.environ, "COLUMNS": "100"}, capture_output=True,
                               text=True, check=True).stdout
    before, usage = help_text.split("\nUsage:", 1)
    usage, _, options = usage.partition("\n\n")
    page = [f"# gmm-bmm {command}", paragraphs(before.splitlines()), f"```text\n{usage.strip()}\n```".replace("\n       ", "\n")]
    body, examples = [], False
    for line in options.splitlines():
        if re.match(r"^\S.*:$", line):
            page.append(paragraphs(body))
            body, examples = [], line.startswith("Example")
            page.append(f"## {line[:-1]}")
            examples and page.append("```text")
        elif examples and line:
            page.append(line.strip())
        elif re.match(r"^ {2,6}(-|\[|<)", line):
            page.append(paragraphs(body))
            name, _, text = line.strip().partition("  ")
            body = [text] if text else []
            page.append(f"### `{name}`")
        else:
            if examples:
                page.append("```")
                examples = False
            body.append(line)
    page.append("```" if examples else paragraphs(body))
    text = "\n\n".join(part for part in page if part) + "\n"
    return re.sub(r"```text\n\n(.*?)\n\n```", lambda m: "```text\n" + m.group(1).replace("\n\n", "\n") + "\n```", text, flags=re.S)


def python_reference():
    parts = ["# Python\n\nThe package `gmm_bmm`. [Its page](../python/README.md) has examples.\n"]
    for name in ("", ".river", ".distributed", ".spark", ".dask", ".ray"):
        module = "gmm_bmm" + name
        file = ROOT / "python/python/gmm_bmm" / (name[1:] + ".py" if name else "__init__.py")
        listed = re.search(r"__all__ = [\[(](.*?)[\])]", file.read_text(), re.S)
        members = re.findall(r"\"(\w+)\"", listed.group(1)) if listed else re.findall(r"^(?:def|class) ([a-zA-Z]\w*)", file.read_text(), re.M)
        parts.append(f"## {module}\n")
        for member in members:
            if member[0] != "_":
                parts.append(f"::: {module}.{member}\n")
    return "\n".join(parts)


def example_pages(known):
    """A page for each example that has its output in a file of the same name."""
    names = []
    for output in sorted((EXAMPLES / "output").glob("*.txt")):
        program = EXAMPLES / f"{output.stem}.py"
        text = program.read_text()
        title, _, rest = text.split('"""')[1].strip().partition("\n")
        code = text.split('"""', 2)[2].strip()
        write(f"examples/{output.stem}.md", f"# {title.rstrip('.')}\n\n{rest.strip()}\n\n```python\n{code}\n```\n\nIt prints:\n\n```text\n"
              f"{output.read_text().rstrip()}\n```\n")
        names.append(f"examples/{output.stem}.md")
    return names


def settings(examples, names):
    text = (ROOT / "docs/site/mkdocs.yml").read_text()
    results = sorted(page for page in pages().values() if page.startswith(("results/", "datasets/")))
    listed = {"examples": examples, "commands": [f"commands/{name}.md" for name in names], "results": results}
    for name, entries in listed.items():
        text = re.sub(rf"^( *)- (\w+): {name}$", lambda m: "\n".join(
            [f"{m[1]}- {m[2]}:"] + [f"{m[1]}    - {entry}" for entry in entries]), text, flags=re.M)
    return text


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--command", required=True, help="the program whose help becomes the reference")
    arguments.add_argument("--rustdoc", required=True, help="the folder that cargo doc wrote")
    arguments.add_argument("--out", default=str(ROOT / "target/site"))
    arguments = arguments.parse_args()
    shutil.rmtree(SOURCE, ignore_errors=True)
    known, used = pages(), set()
    for path, page in known.items():
        write(page, on_site((ROOT / path).read_text(), path, known, used))
    for file in sorted(used):
        (SOURCE / "pages" / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / file, SOURCE / "pages" / file)
    names = commands(arguments.command)
    for command in names:
        write(f"commands/{command}.md", command_page(arguments.command, command))
    write("reference/python.md", python_reference())
    write("reference/rust.md", "# Rust\n\nThe crate [`gmm_bmm`](../rust/gmm_bmm/index.html) has a tutorial on its first page.\n")
    shutil.copytree(arguments.rustdoc, SOURCE / "pages/rust")
    (SOURCE / "mkdocs.yml").write_text(settings(example_pages(known), names))
    (SOURCE / "python").symlink_to(ROOT / "python/python")
    done = subprocess.run([sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--config-file", SOURCE / "mkdocs.yml",
                           "--site-dir", os.path.abspath(arguments.out)])
    sys.exit(done.returncode)


if __name__ == "__main__":
    main()
