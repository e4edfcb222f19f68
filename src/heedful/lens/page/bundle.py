"""Bundle ES modules into one classic script, so that the page opens from a file without a server.

Each module becomes a function that gives its exports, and they stand in the order in which they need each
other. Only what the page uses is understood; anything else is an error that names its file and line:

    import { a, b as c } from "./other.js";        import * as other from "./other.js";
    export const a = …    export function a(…    export async function a(…    export class A …
"""

import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ...errors import HeedfulError

NAME = r"[A-Za-z_$][\w$]*"
NAMED = re.compile(rf'import \{{ ({NAME}(?: as {NAME})?(?:, {NAME}(?: as {NAME})?)*+),? \}} from "(\.[^"]+)";\s*')
WHOLE = re.compile(rf'import \* as ({NAME}) from "(\.[^"]+)";\s*')
EXPORT = re.compile(rf"export ((?:const |function |async function |function\* ?|class )({NAME})\b.*)")
STATEMENT = re.compile(r"\s*(?:import|export)\b(?!\s*[:,)\]])")
DYNAMIC = re.compile(r"\bimport\s*\(|\bimport\.meta\b")
CLOSING = re.compile(r"</script|<!--", re.IGNORECASE)


class ScriptBundleError(HeedfulError, ValueError):
    """Raised for a module that cannot be bundled, with its file, its line and the reason."""


@dataclass(frozen=True)
class Module:
    """A module's lines as they stand in the script, with its imports and exports."""

    path: str
    lines: list[str]
    exports: list[str]
    imports: list[tuple[str, str, list[str]]]  # where it stands, the path, the names (none: the whole module)


def read_modules(folder: Path) -> dict[str, str]:
    """Read every module below a folder, by its relative path."""
    return {path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8") for path in folder.rglob("*.js")}


def bundle(sources: Mapping[str, str], entry: str = "main.js") -> str:
    """Return one script that runs `entry` after its dependencies; `sources` are texts by path."""
    if entry not in sources:
        raise ScriptBundleError(f"{entry}: there is no such module; there are: {', '.join(sorted(sources))}")
    ordered: dict[str, Module] = {}
    _visit(entry, sources, ordered, above=[])
    return '(() => {\n"use strict";\nconst bundled = {};\n' + "".join(map(_wrapped, ordered.values())) + "})();\n"


def _visit(path: str, sources: Mapping[str, str], ordered: dict[str, Module], above: list[str]) -> None:
    """Add a module to `ordered` after all of its dependencies."""
    module = Module(path, [], [], [])
    for number, line in enumerate(sources[path].splitlines(), 1):
        module.lines.append(_translated(line, f"{path}, line {number}", module))
    above = [*above, path]
    for where, needed, names in module.imports:
        if needed in above:
            way = " → ".join([*above[above.index(needed) :], needed])
            raise ScriptBundleError(
                f"{where}: modules import each other in a cycle: {way}; move what both need to a third"
            )
        if needed not in sources:
            raise ScriptBundleError(f"{where}: there is no module {needed}")
        if needed not in ordered:
            _visit(needed, sources, ordered, above)
        for name in names:
            if name not in ordered[needed].exports:
                available = ", ".join(ordered[needed].exports) or "nothing"
                raise ScriptBundleError(f"{where}: {needed} does not export {name}; it exports: {available}")
    ordered[path] = module


def _translated(line: str, where: str, module: Module) -> str:
    """Turn an import into a constant and an export into a plain declaration, and note both in the module."""
    if CLOSING.search(line):
        raise ScriptBundleError(f"{where}: the text would end the page's script element: {line.strip()!r}")
    if match := NAMED.fullmatch(line) or WHOLE.fullmatch(line):
        needed = posixpath.normpath(posixpath.join(posixpath.dirname(module.path), match[2]))
        pairs = [part.split(" as ") for part in match[1].split(", ")] if match.re is NAMED else []
        module.imports.append((where, needed, [pair[0] for pair in pairs]))
        names = f"{{ {', '.join(map(': '.join, pairs))} }}" if pairs else match[1]
        return f'const {names} = bundled["{needed}"];'
    if match := EXPORT.fullmatch(line):
        module.exports.append(match[2])
        return match[1]
    if STATEMENT.match(line) or DYNAMIC.search(line):
        raise ScriptBundleError(
            f"{where}: not understood: {line.strip()!r}; "
            'write `import { a, b } from "./x.js";` on one line, or `export` before const, function or class'
        )
    return line


def _wrapped(module: Module) -> str:
    """Wrap the module in a function, so that its names stay local."""
    body = "\n".join(module.lines)
    return f'bundled["{module.path}"] = (() => {{\n{body}\nreturn {{ {", ".join(module.exports)} }};\n}})();\n'
