"""Hooks of mkdocs: pages from outside docs/, and links to files that the site does not have.

ARCHITECTURE.md, scenarios/README.md ...   pages of the site, next to those of docs/
README.md                                  index.md, the first page
../harness/exam/mutants, LICENSE ...       in the repository only: the link becomes plain text
"""

import posixpath
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
FIRST = "index.md"
OUTSIDE = (
    *("README.md", "ARCHITECTURE.md", "STYLE.md", "CONTRIBUTING.md", "CHANGELOG.md"),
    *("scenarios/README.md", "docker/README.md"),
)
"""Files that become pages of the site, by their paths in the repository."""

_LINK = re.compile(r"(?P<image>!?)\[(?P<text>(?:[^\[\]]|\[[^\]]*\])*)\]\((?P<to>[^()\s]+)\)")
_CODE = re.compile(r"(```.*?```|`[^`\n]*`)", re.DOTALL)


def site_path(repository_path: str) -> str:
    """Return the path in the site of a file of the repository."""
    if repository_path == "README.md":
        return FIRST
    return repository_path.removeprefix("docs/")


def repository_path(site: str) -> str:
    """Return the path in the repository of a file of the site."""
    if site == FIRST:
        return "README.md"
    return site if site in OUTSIDE else f"docs/{site}"


def rewritten(text: str, site: str, known: set[str]) -> str:
    """Return a page whose links lead to pages of the site; other relative links become text."""
    folder = posixpath.dirname(repository_path(site))

    def link(found: re.Match[str]) -> str:
        path, mark, anchor = found["to"].partition("#")
        if re.match(r"[a-z]+:", found["to"]) or not path:
            return found[0]
        target = site_path(posixpath.normpath(posixpath.join(folder, path)))
        if target not in known:
            return found["text"]
        relative = posixpath.relpath(target, posixpath.dirname(site) or ".")
        return f"{found['image']}[{found['text']}]({relative}{mark}{anchor})"

    parts = _CODE.split(text)
    # Inline code may be the text of a link, so only blocks of code are left unchanged.
    joined = [""]
    for part in parts:
        if part.startswith("```"):
            joined += [part, ""]
        else:
            joined[-1] += part
    return "".join(part if part.startswith("```") else _LINK.sub(link, part) for part in joined)


def on_files(files: Any, config: Any) -> Any:
    """Add the pages from outside docs/."""
    from mkdocs.structure.files import File

    for path in OUTSIDE:
        content = (ROOT / path).read_text(encoding="utf-8")
        files.append(File.generated(config, site_path(path), content=content))
    return files


def on_page_markdown(markdown: str, page: Any, files: Any, **_: Any) -> str:
    """Rewrite the links of a page."""
    return rewritten(markdown, page.file.src_uri, {each.src_uri for each in files})
