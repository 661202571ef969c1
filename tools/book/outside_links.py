"""A preprocessor of mdBook: relative links that leave docs/ become links to the repository."""

import json
import re
import sys


def main() -> None:
    if sys.argv[1:2] == ["supports"]:
        return  # every renderer
    context, book = json.load(sys.stdin)
    repository = context["config"]["output"]["html"]["git-repository-url"]
    for item in book["items"]:
        rewrite(item, f"{repository}/blob/main/")
    json.dump(book, sys.stdout)


def rewrite(item: object, root: str) -> None:
    """Chapters are objects, parts and separators are not. All pages lie directly in docs/, so `../` is the root."""
    if isinstance(item, dict) and "Chapter" in item:
        chapter = item["Chapter"]
        chapter["content"] = re.sub(r"\]\(\.\./", f"]({root}", chapter["content"])
        for below in chapter["sub_items"]:
            rewrite(below, root)


main()
