"""How Sphinx makes the documentation site from the Markdown files of the repository.

`scripts/build_site.sh` runs it with the repository as the source folder, so that pages have the paths
of their files and relative links lead to the same places on the site and in the repository.
"""

import json
import os
import re
import shutil
from pathlib import Path

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.util import logging

ROOT = Path(__file__).resolve().parents[2]
# The output of `cargo doc`, which becomes the folder `api` of the site if it is there.
CARGO_DOC = Path(os.environ["CARGO_DOC"])

project = "tapeloop"
version = re.search(r'^version = "(.+)"$', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)[1]
html_title = f"tapeloop {version}"

extensions = ["myst_parser"]
source_suffix = {".md": "markdown", ".ipynb": "markdown"}
root_doc = "README"
include_patterns = [
    "*.md",
    "benches/reference/*.md",
    "crates/**/README.md",
    "crates/**/DECISIONS.md",
    "docs/**",
    "fuzz/README.md",
    "python/README.md",
    "samples/README.md",
    "src/features/*.md",
]
# Folders that hold builds and their output are not searched.
exclude_patterns = [".*", "target", "out", "release", "wheels", "fuzz/target", "docs/site", "docs/bench", "docs/upstream"]

# GitHub's Markdown: headings have GitHub's anchors, and what MyST adds to Markdown is off.
myst_heading_anchors = 6
myst_disable_syntax = ["colon_fence", "myst_block_break", "myst_line_comment", "myst_role", "myst_target"]
highlight_language = "text"

html_theme = "furo"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_search_scorer = str(ROOT / "docs/site/static/scorer.js")
smartquotes = False
html_copy_source = False
html_show_sourcelink = False
html_show_copyright = False
html_show_sphinx = False
html_theme_options = {"top_of_page_buttons": []}
pygments_style = "default"
pygments_dark_style = "github-dark"

# The sidebar: below each page its captions, and below each caption its pages. A page that is in none of
# these lists fails the build.
CONTENTS = {
    "README": {
        "Guides": [
            "docs/guides/folder-to-dataframe",
            "docs/guides/interactions",
            "docs/guides/notebook",
            "docs/guides/cluster",
            "docs/guides/from-other-packages",
            "docs/guides/embed",
            "docs/guides/embed-service",
            "docs/guides/benchmark-report",
        ],
        "The program": [
            "docs/CONFIG",
            "docs/METHODS",
            "docs/VALIDATION",
            "docs/COMPARISON",
            "docs/PACKED",
            "docs/LIMITS",
            "docs/ERRORS",
        ],
        "Libraries": [
            "Python: introduction <python/README>",
            "Python: all names <docs/PYTHON_API>",
            "docs/RUST_API",
        ],
        "Speed": ["docs/PERFORMANCE", "Reference programs <benches/reference/README>"],
        "Development": [
            "docs/CONTRIBUTING",
            "docs/ARCHITECTURE",
            "docs/UNSAFE",
            "Comparisons with Python packages <crates/cli/oracles/README>",
            "fuzz/README",
            "samples/README",
            "CHANGELOG",
        ],
    },
    "docs/CONFIG": {
        "": [
            "config/inputs",
            "config/features",
            "config/feature-reference",
            "config/choosing-residues",
            "config/results",
            "config/columns",
            "config/annotations",
            "config/running",
            "config/reports",
            "config/kernels",
            "config/painting",
            "config/validating",
            "config/benchmarks",
        ],
    },
    "docs/ARCHITECTURE": {
        "": [
            *sorted(
                f"{path.parts[-2]} <../{path.relative_to(ROOT).with_suffix('')}>"
                for path in ROOT.glob("crates/*/README.md")
            ),
            "cli: the program <../crates/cli/src/bin/tapeloop/README>",
            "features <../src/features/README>",
            *sorted(
                f"Decisions: {path.parts[-2]} <../{path.relative_to(ROOT).with_suffix('')}>"
                for path in [*ROOT.glob("crates/*/DECISIONS.md"), ROOT / "src/features/DECISIONS.md"]
            ),
        ],
    },
}

# Files that browsers show; the others are shown as text.
SHOWN = {".html", ".json", ".pdf", ".png", ".svg", ".txt"}

log = logging.getLogger(__name__)


def markdown_of(notebook: str) -> str:
    """A notebook's cells as Markdown: text, code, and what the code printed."""
    parts = []
    for cell in json.loads(notebook)["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
            continue
        parts.append(f"```python\n{source}\n```")
        for output in cell["outputs"]:
            data = output.get("data", {"text/plain": output.get("text", [])})
            if "image/png" in data:
                parts.append(f'<img alt="The plot" src="data:image/png;base64,{data["image/png"].strip()}">')
            elif "text/html" in data:
                # A blank line would end the HTML.
                parts.append(re.sub(r"\n\s*\n", "\n", "".join(data["text/html"])))
            else:
                parts.append("```text\n" + "".join(data["text/plain"]) + "\n```")
    return "\n\n".join(parts)


def crates_in(cargo_doc: Path) -> list[str]:
    """The crates of this workspace that `cargo doc` has described."""
    return sorted(path.parent.name for path in cargo_doc.glob("tapeloop*/index.html"))


def complete(app: Sphinx, name: str, source: list[str]) -> None:
    """Adds to a page what the site needs and a reader of the file does not."""
    if app.env.doc2path(name).suffix == ".ipynb":
        source[0] = markdown_of(source[0])
    for caption, pages in CONTENTS.get(name, {}).items():
        options = [":hidden:", *([f":caption: {caption}"] if caption else [])]
        source[0] += "\n\n```{toctree}\n" + "\n".join([*options, "", *pages]) + "\n```\n"
    if name == "docs/RUST_API" and CARGO_DOC.is_dir():
        links = [f'<li><a href="../api/{crate}/index.html">{crate}</a></li>' for crate in crates_in(CARGO_DOC)]
        source[0] += "\n\n## The reference\n\n<ul>\n" + "\n".join(links) + "\n</ul>\n"


def show_files(app: Sphinx, document: nodes.document) -> None:
    """Links to files that are no pages open them, in place of a download."""
    folder = Path(app.env.doc2path(app.env.docname)).parent
    for link in list(document.findall(addnodes.download_reference)):
        path = (folder / link["reftarget"]).resolve()
        if link["reftarget"].startswith("/"):
            path = ROOT / link["reftarget"].lstrip("/")
        if not path.is_file() or not path.is_relative_to(ROOT):
            log.warning("no file %s", link["reftarget"], location=link)
            continue
        name = path.relative_to(ROOT).as_posix()
        if path.suffix not in SHOWN:
            name += ".txt"
        copy = Path(app.outdir, "files", name)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)
        to_top = "../" * app.env.docname.count("/")
        link.replace_self(nodes.reference("", "", *link.children, refuri=f"{to_top}files/{name}"))


def mark_names(app: Sphinx, document: nodes.document) -> None:
    """Gives code that is one short word a class, by which the style sheet keeps it in one line."""
    for code in document.findall(nodes.literal):
        if re.fullmatch(r"\S{1,24}", code.astext()):
            code["classes"].append("whole")


def finish(app: Sphinx, failure: Exception | None) -> None:
    """Makes the front page, which is README.md, and adds the output of `cargo doc`."""
    if failure is not None:
        return
    out = Path(app.outdir)
    shutil.copyfile(out / "README.html", out / "index.html")
    # `show_files` has copied these files to where the links lead.
    shutil.rmtree(out / "_downloads", ignore_errors=True)
    if CARGO_DOC.is_dir():
        shutil.copytree(CARGO_DOC, out / "api", dirs_exist_ok=True)


def setup(app: Sphinx) -> None:
    """Called by Sphinx."""
    app.connect("source-read", complete)
    app.connect("doctree-read", show_files)
    app.connect("doctree-read", mark_names)
    app.connect("build-finished", finish)
