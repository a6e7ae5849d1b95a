"""One script that repeats all rows of the log and checks the numbers."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pages.kit.asking import FIND, FOUND
from pages.kit.models import code_that_opens

CLOSE = 1e-3
LOOP = """\
failed = 0
for number, (name, text, answer, changes, before, after) in enumerate(ROWS, start=1):
    bundle = MODELS[name]
    prompt = Prompt(bundle, text, min({most}, bundle.config.max_len))
    found = intervene(prompt=prompt, changes=changes, answer=answer, controls=0)
    close = abs(found.before - before) < {close} and abs(found.after - after) < {close}
    failed += not close
    print(number, "ok" if close else "DIFFERS", name, changes, f"{{found.before:.4f}} -> {{found.after:.4f}}", sep="  ")
sys.exit(f"{{failed}} of {{len(ROWS)}} rows differ" if failed else 0)"""


def script_of(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the script that measures every row again and ends with an error where one differs."""
    names = list(dict.fromkeys(row["model"] for row in rows))
    opened = {name: code_that_opens(name) for name in names}
    imports = sorted({line for lines, _ in opened.values() for line in lines.split("\n")})
    imports += [
        "from transformer_core.analysis.lab.intervention import intervene",
        "from transformer_core.prompt import Prompt",
    ]
    models = "".join(f"    {name!r}: {code},\n" for name, (_, code) in opened.items())
    listed = "".join(f"    {_written(row)!r},\n" for row in rows)
    parts = [
        f'"""Repeat what Vitrine\'s Lab measured, row by row, and check the numbers.\n\n{FOUND}\n"""',
        FIND,
        "\n".join(imports),
        f"MODELS = {{\n{models}}}",
        f"ROWS = [\n{listed}]",
        LOOP.format(close=CLOSE, most=128),
    ]
    return "\n\n".join(parts) + "\n"


def _written(row: Mapping[str, Any]) -> tuple[Any, ...]:
    changes = _tuples(json.loads(row["changes"] or "[]"))
    return (row["model"], row["text"], json.loads(row["answer"] or "null"), changes, row["before"], row["after"])


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value
