"""The addresses in the metadata of the installed distribution."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, metadata


def home() -> str | None:
    """The address of the project in the installed distribution; None where it has none."""
    return _url("homepage", "repository")


def page_url(page: str, section: str) -> str | None:
    """A section of a page of docs/ on the web; None where the distribution has no address.

    The documentation is a site, whose pages are folders; a repository shows the files themselves.
    """
    if (site := _url("documentation")) is not None:
        folder = page.removesuffix("README.md").removesuffix(".md").rstrip("/")
        return f"{site.rstrip('/')}/{folder}/#{section}"
    place = _url("repository", "source", "homepage")
    return f"{place.rstrip('/').removesuffix('.git')}/blob/main/docs/{page}#{section}" if place else None


def _url(*labels: str) -> str | None:
    try:
        urls = metadata("preflight-llm").get_all("Project-URL") or []
    except PackageNotFoundError:
        return None
    found = {label.strip().lower(): url.strip() for label, _, url in (line.partition(",") for line in urls)}
    return next((found[label] for label in labels if label in found), None)
