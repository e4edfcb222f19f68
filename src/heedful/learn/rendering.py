"""Renders chapters and documents as HTML pages that work without a server: no text in them can become code."""

import html
import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

from ..lens.page.bundle import bundle, read_modules
from ..lens.page.rendering import HERE as LENS
from ..lens.page.rendering import content_security_policy, fill_template, script_json, style
from .chapters import Block, Chapter
from .execution import CellOutput, run_cells
from .figures import figure_data, script_of

HERE = Path(__file__).parent / "page"
SHEETS = ("1-ground", "2-bar", "views")  # of the look page
Resolve = Callable[[str], str | None]  # the address of a link's target, or None where there is no page for it


@cache
def catalog(language: str) -> dict[str, str]:
    """Return the shell's messages."""
    messages: dict[str, str] = json.loads((HERE / "locales" / f"{language}.json").read_text(encoding="utf-8"))
    return messages


def render_page(
    title: str, body: str, *, language: str, contents: str, document: Mapping[str, Any], figures: Sequence[str] = ()
) -> str:
    """Return the HTML of a page.

    Args:
        title: plain text.
        body: the HTML of its main part.
        language: "en" or "ko".
        contents: the HTML of the list of chapters.
        document: JSON data for the script: `home`, `languages` (addresses), `chapter` (its number, or None).
        figures: the names of the figures on the page.
    """
    script = _script(tuple(dict.fromkeys(figures)))
    messages = catalog(language)
    parts = {
        "policy": content_security_policy(script),
        "style": style(*SHEETS) + "".join(path.read_text("utf-8") for path in sorted((HERE / "style").glob("*.css"))),
        "script": script,
        "language": language,
        "title": html.escape(title),
        "skip": html.escape(messages["skip"]),
        "footer": html.escape(messages["footer"] if document.get("chapter") else "Heedful"),
        "contents": contents,
        "body": body,
        "document": script_json(
            {**document, "language": language, "messages": messages, "figures": _figures(figures, language)}
        ),
    }
    return fill_template((HERE / "template.html").read_text(encoding="utf-8"), parts)


@cache
def _script(figures: tuple[str, ...]) -> str:
    """Return one script with the shell, and the drawings of these figures."""
    lens = {f"lens/{path}": source for path, source in read_modules(LENS / "script").items()}
    learn = {f"learn/{path}": source for path, source in read_modules(HERE / "script").items()}
    scripts = {name: script_of(name) for name in figures}
    imports = [f'import {{ {export} }} from "./figures/{file}";' for file, export in scripts.values()]
    drawings = ", ".join(f'"{name}": {export}' for name, (_, export) in scripts.items())
    entry = "\n".join(['import { openPage } from "./main.js";', *imports, f"openPage({{ {drawings} }});"])
    return bundle({**lens, **learn, "learn/entry.js": entry}, "learn/entry.js")


def _figures(names: Sequence[str], language: str) -> dict[str, Any]:
    """Return the data and the messages of figures by name."""
    document: dict[str, Any] = {}
    for name in names:
        messages = json.loads((HERE / "script" / "figures" / f"{name}.json").read_text(encoding="utf-8"))[language]
        document[name] = {"messages": messages, "data": figure_data(name, language)}
    return document


def render_chapter(chapter: Chapter, resolve: Resolve) -> str:
    """Run the cells of a chapter and return its main part as HTML."""
    messages = catalog(chapter.language)
    outputs = iter(run_cells(chapter))
    head = "".join(
        f"<div><h2>{messages[key]}</h2><ul>{''.join(f'<li>{_inline(item)}</li>' for item in items)}</ul></div>"
        for key, items in (("able", chapter.able), ("needs", chapter.needs))
    )
    number = messages["chapter"].format(n=int(chapter.number))
    return (
        f'<header class="opening"><p class="eyebrow">{number}</p><h1>{html.escape(chapter.title)}</h1>'
        f'<div class="aims">{head}</div></header>\n'
        + "".join(_block(block, outputs, resolve, messages) for block in chapter.blocks)
    )


def _block(block: Block, outputs: Any, resolve: Resolve, messages: Mapping[str, str]) -> str:
    match block.kind:
        case "prose":
            return render_markdown(block.text, resolve)
        case "formula":
            return f'<p class="formula" tabindex="0">{html.escape(block.text)}</p>\n'
        case "cell":
            return _cell(block.text, next(outputs), messages)
        case "figure":
            caption = render_markdown(block.text, resolve)
            caption = f"<figcaption><b>{messages['figure']}</b> {caption}</figcaption>"
            name = html.escape(block.title)
            return f'<figure class="live" data-figure="{name}">{caption}<div class="stage"></div></figure>\n'
    inside = "".join(_block(inner, outputs, resolve, messages) for inner in block.blocks)
    title = html.escape(block.title)
    if block.kind == "deep":
        return f'<details class="box deep"><summary><b>{messages["deep"]}</b> {title}</summary>{inside}</details>\n'
    if block.kind == "exercise":
        inside += f'<pre class="code"><code>heedful learn check {title}</code></pre>'
    label = f"{messages[block.kind]} {title}".strip()
    return f'<section class="box {block.kind}"><h2>{label}</h2>{inside}</section>\n'


def _cell(code: str, output: CellOutput, messages: Mapping[str, str]) -> str:
    lines = [f'<pre class="code" tabindex="0"><code>{_colored(code, "python")}</code></pre>']
    if output.text:
        lines.append(
            f'<pre class="output" tabindex="0" aria-label="{messages["output"]}">{html.escape(output.text)}</pre>'
        )
    if output.error:
        lines.append(f'<pre class="output failure">{html.escape(output.error)}</pre>')
    return f'<div class="cell">{"".join(lines)}</div>\n'


def _colored(code: str, name: str, _: str = "") -> str:
    """Return code as HTML with a class for each kind of token; of an unknown language, as plain text."""
    try:
        return highlight(code, get_lexer_by_name(name, stripnl=False), HtmlFormatter(nowrap=True)).rstrip("\n")
    except ClassNotFound:
        return html.escape(code)


_MARKDOWN = MarkdownIt("commonmark", {"html": False, "highlight": _colored}).enable("table")


def _inline(text: str) -> str:
    return _MARKDOWN.renderInline(text)


def render_markdown(text: str, resolve: Resolve) -> str:
    """Return Markdown as HTML. HTML in it is shown as text; a link without a target is shown as its text."""
    tokens = _MARKDOWN.parse(text)
    for place, token in enumerate(tokens):
        if token.type == "heading_open":
            token.attrSet("id", anchor(tokens[place + 1].content))
        _relink(token.children or [], resolve)
    rendered = _MARKDOWN.renderer.render(tokens, _MARKDOWN.options, {})
    return rendered.replace("<table>", '<div class="scroll"><table>').replace("</table>", "</table></div>")


def _relink(tokens: Sequence[Token], resolve: Resolve) -> None:
    """Replace the targets of links and images; without a target a link becomes a span."""
    tag = "a"
    for token in tokens:
        for name in ("href", "src"):
            if name in token.attrs:
                address = resolve(str(token.attrs[name]))
                token.attrs = {} if address is None else {**token.attrs, name: address}
                token.tag = tag = token.tag if address is not None else "span"
        if token.type == "link_close":
            token.tag = tag


def anchor(heading: str) -> str:
    """Return a heading's id, as GitHub makes it."""
    plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
    return re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
