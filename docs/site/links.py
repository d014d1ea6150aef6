"""Looks at every link of a built site: `python docs/site/links.py FOLDER [--outside]`.

A link inside must lead to a file and an anchor that exist. With --outside the addresses of other sites are requested,
without it they are listed with how many pages have them.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.parse import unquote, urldefrag
from urllib.request import Request, urlopen

ELSEWHERE = ("http://", "https://", "mailto:", "data:")


class Page(HTMLParser):
    """The links and the anchors of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.anchors: set[str] = {""}
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.anchors |= {value for name in ("id", "name") if (value := values.get(name))}
        self.links |= {value for name in ("href", "src") if (value := values.get(name))}


def broken(site: Path, pages: dict[Path, Page]) -> Iterator[str]:
    """The links inside of the site that lead nowhere."""
    for path, page in pages.items():
        for link in sorted(link for link in page.links if not link.startswith(ELSEWHERE)):
            name, anchor = map(unquote, urldefrag(link))
            target = (path.parent / name.partition("?")[0]).resolve() if not name.startswith("/") else site / name[1:]
            target = path if not name else target / "index.html" if target.is_dir() else target
            if not target.exists():
                yield f"{path.relative_to(site)}: {link}: there is no such page"
            elif target in pages and not anchor.startswith("__") and anchor not in pages[target].anchors:
                yield f"{path.relative_to(site)}: {link}: the page has no such section"


def refused(address: str) -> str | None:
    """Why an address of another site cannot be opened."""
    try:
        with urlopen(Request(address, method="HEAD", headers={"User-Agent": "preflight-docs"}), timeout=20):
            return None
    except HTTPError as error:
        return None if error.code in (403, 405, 429) else f"{error.code} {error.reason}"
    except (URLError, TimeoutError) as error:
        return str(error)


def main() -> None:
    site = Path(sys.argv[1]).resolve()
    found = sorted(path for path in site.rglob("*.html") if path.stem != "404")
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in found}
    outside: dict[str, int] = defaultdict(int)
    for page in pages.values():
        for link in {urldefrag(link)[0] for link in page.links if link.startswith(("http://", "https://"))}:
            outside[link] += 1
    faults = list(broken(site, pages))
    if "--outside" in sys.argv:
        faults += [f"{link}: {why}" for link in sorted(outside) if (why := refused(link))]
    else:
        print(*(f"{count:4} {link}" for link, count in sorted(outside.items())), sep="\n")
    print(f"{len(pages)} pages, {len(outside)} addresses elsewhere, {len(faults)} links that lead nowhere")
    sys.exit("\n".join(faults) or None)


if __name__ == "__main__":
    main()
