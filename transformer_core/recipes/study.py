"""What the recipes share that measure a question in many short runs and write the answers to a file of JSON."""

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from transformer_core.measured_files import write_shipped
from transformer_core.untrusted.schema import checked

T = TypeVar("T")


def run_study(
    name: str,
    measure: Callable[[argparse.Namespace, str], Any],
    arguments: list[str] | None,
    *,
    says: str,
    data: str,
    quick: str,
    work: bool = True,
) -> int:
    """Read the command line, measure, write what was found, and return the exit code: 0, or 2 with one line of error.

    Args:
        name: of the recipe's module.
        measure: from the arguments and the command to measure again, to what write_shipped writes.
        says: what is measured; data: what --data must hold; quick: what --quick makes of it.
        work: whether finished runs can be kept for a command that is interrupted.
    """
    parser = argparse.ArgumentParser(prog=name, description=says)
    parser.add_argument("--data", type=Path, required=True, metavar="DIR", help=f"folder that holds {data}")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE.json", help="where the numbers are written")
    parser.add_argument("--quick", action="store_true", help=f"{quick}, to try the command out")
    if work:
        kept = "finished runs, kept for an interrupted command"
        parser.add_argument("--work", type=Path, metavar="FILE.jsonl", help=kept)
    chosen = parser.parse_args(arguments)
    command = f"python -m transformer_core.recipes.{name} --data DIR --out {chosen.out.as_posix()}"
    try:
        write_shipped(chosen.out, measure(chosen, f"{command} --quick" if chosen.quick else command))
    except (ValueError, OSError) as error:
        print(f"{name}: {' '.join(str(error).split())}", file=sys.stderr)
        return 2
    return 0


def each_run(
    plans: Iterable[Mapping[str, Any]], run: Callable[..., T], form: type[T], work: Path | None
) -> tuple[T, ...]:
    """Carry out runs, one after another; those that the file of finished runs has are taken from there.

    Args:
        plans: what each run is told; its record has the same under the same names.
        run: from what it is told to its record, a dataclass.
        form: of the records.
        work: the file of finished runs, a line each, to which new ones are added.
    """
    lines = [] if work is None or not work.is_file() else work.read_text(encoding="utf-8").splitlines()
    done, found = [checked(json.loads(line), form) for line in lines], []
    for plan in plans:
        record = next((one for one in done if plan.items() <= vars(one).items()), None)
        if record is None:
            record = run(**plan)
            if work is not None:
                with work.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(vars(record)) + "\n")
        print(record, file=sys.stderr, flush=True)
        found.append(record)
    return tuple(found)
