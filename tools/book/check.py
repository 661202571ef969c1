"""Checks the built book: every page of docs/ is in it, and every relative link in it leads to a file and a heading there.

    python3 tools/book/check.py BOOK
"""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """The ids of a page, and what it links to or embeds."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id" and value:
                self.ids.add(value)
            elif name in ("href", "src") and value:
                self.links.append(value)


def main(book: Path) -> None:
    docs = Path(__file__).resolve().parents[2] / "docs"
    names = {"index" if path.stem == "README" else path.stem for path in docs.glob("*.md")} - {"SUMMARY"}
    pages = {path.resolve(): Page(path) for path in book.rglob("*.html") if path.name not in ("404.html", "toc.html")}
    errors = [f"docs/{name}.md is not in docs/SUMMARY.md" for name in sorted(names) if not (book / f"{name}.html").exists()]
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.is_file():
                errors.append(f"{path.name}: `{link}` leads to no file")
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].ids:
                errors.append(f"{path.name}: `{link}` leads to a page without that heading")
    if errors:
        sys.exit("\n".join(errors))
    print(f"{len(pages)} pages, no broken links")


main(Path(sys.argv[1]))
