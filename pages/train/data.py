"""What a form starts from and what the run learns from: a preset or another run, and a table, reviews or text."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

import streamlit as st
from streamlit.runtime.uploaded_file_manager import UploadedFile

from pages.kit.controls import Choice, Text
from pages.kit.glossary import show_prose
from pages.kit.refusals import in_own_words
from pages.kit.runs import find_run, learned_words
from pages.kit.uploads import upload, uploaded
from pages.kit.url import current, forget, keep
from pages.kit.verdict import class_word
from pages.language import joined, language, plain, section, t
from pages.serving.limits import may_read, readable_folder
from pages.train.article import show_article_differences
from pages.train.settings import ALL, INTO, LANGUAGE, LARGEST_PASSAGE, NETWORK, SOURCE, apply, ask, read_settings
from transformer_core.examples import distinct, rows_needed
from transformer_core.training.corpora.pairs import translation_pairs
from transformer_core.training.corpora.reviews import passage, written_reviews
from transformer_core.training.corpora.sequences import sequences
from transformer_core.training.runs.errors import words_of
from transformer_core.training.runs.presets import ARTICLE, PRESETS, fitted
from transformer_core.training.runs.settings import change, settings
from transformer_core.training.spec import LABELS_OF_REVIEWS, Given, Origin, RunSpec, Source
from transformer_core.training.tasks.pairs import INTO as TARGETS
from transformer_core.untrusted.tables import (
    ENCODINGS,
    ROWS_FILE,
    Broken,
    Preview,
    clean_text,
    preview,
    read_imdb,
    read_table,
    write_rows,
)
from transformer_core.untrusted.tables.cleaning import shown
from transformer_core.untrusted.tables.opening import MOST_BYTES
from transformer_core.untrusted.tables.pairs import (
    PAIRS_FILE,
    ReadPairs,
    aligned_files,
    read_aligned,
    read_pasted_pairs,
    write_pairs,
)

FORM = (*(one.name for one in ALL), "path", "passage", "pairs", "encoding", "text_column", "label_column")
OF_TABLE = ("encoding", "text_column", "label_column")
DATA = ("source", "path", "passage", "pairs", *OF_TABLE)
BRANCH = re.compile(r"([a-z0-9]{1,32})(?:\.([0-9]{1,4}))?")


@dataclass(frozen=True)
class Base:
    """What a form begins with.

    Args:
        spec: the settings where nothing is changed.
        origin: the run that they are of; None for a preset.
        data: that run's file, None where it has none.
    """

    spec: RunSpec
    origin: Origin | None = None
    data: Path | None = None

    @property
    def usual(self) -> dict[str, Any]:
        """Every setting where nothing is changed."""
        return settings(self.spec)

    @property
    def has_weights(self) -> bool:
        """Whether the weights are taken over, too."""
        return self.origin is not None and self.origin.frame is not None


def gave_data() -> bool:
    """Tell whether a person gave data of their own: a file, a place or a text. Another preset must learn from them."""
    text = current("passage")
    given = {"table": uploaded("table"), "imdb": current("path"), "characters": text, "masked_words": text}
    given["pairs"] = current("pairs") or current("path")
    return bool(given.get(current("source")))


def begin_with(run: str, frame: int | None) -> None:
    """Fill the form with a run's settings, to go on from one of its frames or, with None, from fresh weights."""
    forget(*FORM, "run", "frame", "step")
    keep("branch", run if frame is None else f"{run}.{frame}", "")


def is_there(spec: RunSpec) -> bool:
    """Return whether a preset's data come with the app, or lie where visitors of this server may name them."""
    return spec.data.source != "imdb" or readable_folder() is not None


def preset_labels() -> dict[str, str]:
    """Return the presets' names in words; those whose data are not there come last, in grey."""
    said = {name: t(f"preset.{name}") for name in PRESETS}
    missing = {name: f":gray[{said[name]}]" for name, spec in PRESETS.items() if not is_there(spec)}
    return {name: word for name, word in said.items() if name not in missing} | missing


def in_language(spec: RunSpec, lang: Any) -> RunSpec:
    """Return a preset that learns from texts in the reader's language, where its texts come with the app."""
    return change(spec, language=lang) if apply((LANGUAGE,), spec.data.source) else spec


def choose_base() -> Base:
    """Show the presets, or the run that the form was filled from, and return what was chosen."""
    asked = current("branch")
    if asked:
        found = BRANCH.fullmatch(asked)
        store = find_run(found[1]) if found else None
        if found and store is not None:
            keep("branch", asked, "")
            frame = int(found[2]) if found[2] else None
            return _of_run(store, frame)
        st.warning(t("run.gone", run=plain(asked[:80])), icon=":material/link_off:")
        forget("branch")
    chosen = Choice("preset", preset_labels(), label="train.preset", default="quick").show()
    if not all(map(is_there, PRESETS.values())):
        st.caption(t("train.presets_without_data"))
    if st.session_state.setdefault("form_of", chosen) != chosen:
        forget(*(set(FORM) - set(DATA) if gave_data() else FORM))
        st.session_state.form_of = chosen
    base = Base(in_language(PRESETS[chosen], language()))
    if not (gave_data() and current("source") != base.usual["source"]):
        counted = {name: f"{value:,}" if isinstance(value, int) else value for name, value in base.usual.items()}
        show_prose(section("train", f"preset_{chosen}").format(**counted))  # it speaks of the preset's own data
    if chosen == ARTICLE.name:
        show_article_differences()
    return base


def _of_run(store: Any, frame: int | None) -> Base:
    file = store.spec.data.file
    named = {"name": plain(store.spec.name), "run": store.id}
    with st.container(border=True):
        if frame is None:
            st.markdown(t("train.same_settings", **named))
        else:
            steps = {one.number: one.step for one in store.frames()}
            st.markdown(t("train.branch", **named, step=steps.get(frame, "?"), frame=frame))
        if st.button(t("train.leave_branch"), icon=":material/undo:"):
            forget(*FORM, "branch")
            st.rerun()
    spec = replace(store.spec, start=None) if frame is None else store.spec  # fresh weights are no damaged model's
    return Base(spec, Origin(run=store.id, frame=frame), None if file is None else store.folder / file)


COLOURS = ("orange", "blue")  # of the film's first two classes
LABELS = ("negative", "positive")
SHOWN, LOOKED_AT, LONGEST = 4, 64, 240


@lru_cache(maxsize=8)
def some_reviews(language: Any, seed: int) -> tuple[tuple[str, int], ...]:
    """Return some reviews with their labels, one of each construction that turns its words round."""
    written, _ = written_reviews(language, train=LOOKED_AT, held_out=0, seed=seed)
    turned = [one for one in written if one.construction != "plain"]
    found = {}
    for construction in dict.fromkeys(one.construction for one in turned):
        alike = [one for one in turned if one.construction == construction]
        found[construction] = next((one for one in alike if one.label == len(found) % len(LABELS)), alike[0])
    return tuple((one.text, one.label) for one in list(found.values())[:SHOWN])


def _lines(source: str, values: Mapping[str, Any]) -> list[str]:
    if source == "reviews":
        found = some_reviews(values["language"], values["seed"])
        return [f":{COLOURS[label]}-badge[{class_word(LABELS[label])}] {plain(text)}" for text, label in found]
    if source in ("copy", "reverse", "sort"):
        pairs, _ = sequences(
            source, symbols=values["symbols"], length=values["length"], train=SHOWN, held_out=0, seed=values["seed"]
        )
        return [f"`{one}` → `{other}`" for one, other in pairs[:SHOWN]]
    if source == "pairs":
        pairs, _ = translation_pairs(TARGETS[values["language"]], train=SHOWN, held_out=0, seed=values["seed"])  # type: ignore[arg-type]
        return [f"{one} → {other}" for one, other in pairs]
    if source in ("characters", "masked_words"):
        return [f"“{plain(passage(values['language'])[:LONGEST].strip())} …”"]
    return []


def show_samples(source: str, values: Mapping[str, Any]) -> None:
    """Show a few examples where they come with the app."""
    lines = _lines(source, values)
    if lines:
        st.caption(t("train.samples"))
        st.markdown("  \n".join(lines))


T = TypeVar("T")
PASSAGE_FILE = "passage.txt"
SHORTEST_PASSAGE = 200
LONGEST_SHOWN = 160
LONGEST_FILE_NAME = 40
ROWS_SHOWN = 4


@dataclass(frozen=True)
class Learned:
    """What the form says of the data.

    Args:
        source: of the data.
        labels: names of the classes.
        file: what the data is called in the run's folder, None where there is none.
        given: what a person gave, None where the data are generated.
        data: that file's contents, or where they lie.
        there: how many different examples there are, None where that is not bounded.
        name: tells these data from others.
        problem: in words, why they cannot be learned from; "" where they can.
    """

    source: Source
    labels: tuple[str, ...] = LABELS_OF_REVIEWS
    file: str | None = None
    given: Given | None = None
    data: bytes | Path | None = None
    there: int | None = None
    name: str = ""
    problem: str = ""

    def of(self, base: Base) -> RunSpec:
        """Return the spec of a form with these data in which nothing else was changed."""
        if base.origin is not None and self.source == base.spec.data.source:
            return base.spec
        spec = fitted(base.spec, self.source, there=self.there)
        return replace(spec, data=replace(spec.data, labels=self.labels, file=self.file, given=self.given))


def _once(name: str, make: Callable[[], T]) -> T:
    """Return what `make` returns, made once for the file that this session is at."""
    held = st.session_state.get("data_read", {})
    if name not in held:
        kind = name.partition(" ")[0]
        held = {key: value for key, value in held.items() if not key.startswith(f"{kind} ")} | {name: make()}
        st.session_state.data_read = held
    return held[name]


def _show_broken(broken: Broken) -> None:
    if broken:
        first = {row.reason: row.line for row in reversed(broken.first)}
        with st.expander(t("data.broken", count=f"{len(broken):,}"), icon=":material/heart_broken:"):
            for reason, count in broken.counts.most_common():
                counted = t("data.broken_of", count=f"{count:,}", why=t(f"intake.{reason}"))
                begun = [t("data.broken_first", row=f"{first[reason]:,}")] if reason in first else []
                st.markdown(joined(counted, *begun))
            for row in broken.first:
                why = f"{t(f'intake.{row.reason}')}  {row.beginning}"
                st.caption(t("data.broken_row", row=f"{row.line:,}", why=plain(why)))


def _show_rows(seen: Preview, text: str, label: str) -> None:
    places = [next(i for i, column in enumerate(seen.columns) if column.name == name) for name in (text, label)]
    cells = ([row[place] for place in places] for row in seen.rows[:ROWS_SHOWN])
    lines = [f"| {plain(one[:LONGEST_SHOWN])} | {plain(two)} |" for one, two in cells]
    st.markdown("\n".join((f"| {plain(text)} | {plain(label)} |", "|---|---|", *lines)))


def _choose_columns(seen: Preview, detected: str) -> tuple[str, str]:
    names = [column.name for column in seen.columns]
    defaults = (seen.text_column or names[0], seen.label_column or names[-1], detected)
    chosen = []
    for place, name, default in zip(st.columns(3), ("text_column", "label_column", "encoding"), defaults, strict=True):
        options = ENCODINGS if name == "encoding" else names
        with place:
            chosen.append(Choice(name, options, label=f"data.{name}", default=default, form="list").show())
    return chosen[0], chosen[1]


def _read_as(encoding: str, given: UploadedFile, found: Preview) -> Preview:
    return found if encoding == found.encoding else preview(given.getvalue(), name=given.name, encoding=encoding)


def _table(source: Source, _: Base) -> Learned:
    """Let a person bring a file and choose its columns."""
    show_prose(section("train", "data_table"), small=True)
    given = upload(t("data.file"), ["csv", "tsv", "txt", "jsonl", "json", "gz"], most_mb=MOST_BYTES >> 20, key="table")
    if given is None:
        return Learned(source, problem=t("data.missing_file"))
    key = given.file_id
    if st.session_state.setdefault("table_of", key) != key:
        forget(*OF_TABLE)  # they were another file's
        st.session_state.table_of = key
    found = _once(f"found {key}", lambda: preview(given.getvalue(), name=given.name))
    encoding = Choice("encoding", ENCODINGS, label="data.encoding", default=found.encoding).read()
    try:
        seen = _once(f"preview {key} {encoding}", lambda: _read_as(encoding, given, found))
    except ValueError:
        forget("encoding")  # or nobody could choose another
        raise
    text, label = _choose_columns(seen, found.encoding)
    if seen.preamble:
        st.caption(t("data.preamble", lines=plain(" · ".join(seen.preamble))))
    _show_rows(seen, text, label)
    name = f"{key} {seen.encoding} {text} {label}"
    table = _once(
        f"table {name}", lambda: read_table(given.getvalue(), text, label, name=given.name, encoding=seen.encoding)
    )
    counts = ", ".join(f"{plain(label)} ({count:,})" for label, count in table.counts.items())
    st.caption(
        t("data.read", rows=f"{len(table):,}", encoding=seen.encoding, classes=len(table.label_names), names=counts)
    )
    _show_broken(table.broken)
    rows, there = _once(f"rows {name}", lambda: (write_rows(table), len(distinct(table))))
    given_as = Given(name=shown(given.name, LONGEST_FILE_NAME) or "table", count=len(table))
    return Learned(source, table.label_names, ROWS_FILE, given_as, rows, there, name)


def _path(label: str) -> str:
    """Let a person name a place on this machine; return it without outer blanks.

    Args:
        label: key of the words above the box.
    """
    return Text[str]("path", "", label=label, pause=None).show().strip()


def _asked(source: Source, base: Base) -> tuple[int, int]:
    """Return how many examples are needed for what the form asks for, and its seed."""
    asked = read_settings(source, settings(fitted(base.spec, source)))
    return rows_needed(asked["examples"], asked["held_out"]), asked["seed"]


def _imdb(source: Source, base: Base) -> Learned:
    """Let a person say where the reviews lie; as many are read as the run needs, the training part's first."""
    show_prose(section("train", "data_imdb"), small=True)
    path = _path("data.path")
    if not path:
        return Learned(source, problem=t("data.missing_path"))
    place = Path(path).expanduser()
    if not may_read(place):
        return Learned(source, problem=t("data.not_here"))
    most, seed = _asked(source, base)
    name = f"rows {most} {seed} {path}"

    def rows() -> tuple[bytes, int]:
        train, test = read_imdb(place, limit=most, seed=seed)
        found = [*train, *test][:most]
        return write_rows(found), len(found)

    with st.spinner(t("data.reading")):
        data, count = _once(name, rows)
    st.caption(t("data.reviews", count=f"{count:,}"))
    return Learned(
        source, LABELS_OF_REVIEWS, ROWS_FILE, Given(name=shown(place.name, 40), count=count), data, count, name
    )


def _passage(source: Source, _: Base) -> Learned:
    """Let a person paste a text; where there is none, the one that comes with the app is learned from."""
    hint = section("train", "data_passage")
    text = Text[str]("passage", "", label="data.passage", height=100, placeholder=hint).show()
    if not text.strip():
        return Learned(source)
    clean = clean_text(text, SHORTEST_PASSAGE, LARGEST_PASSAGE)
    if clean.n_cut:
        st.caption(t("data.cut", count=f"{clean.n_cut:,}"))
    given = Given(name="", count=len(clean.text))
    return Learned(source, LABELS_OF_REVIEWS, PASSAGE_FILE, given, clean.text.encode(), name=text)


def _pairs(source: Source, base: Base) -> Learned:
    """Let a person paste pairs or name a folder of them; where there are none, the app's own are learned from."""
    hint = section("train", "data_pairs")
    text = Text[str]("pairs", "", label="data.pairs", height=100, placeholder=hint).show()
    path = _path("data.pairs_path") if readable_folder() is not None else ""
    if path:
        return _aligned(source, base, path)
    if not text.strip():
        return Learned(source)
    found = _once(f"pairs {text}", lambda: read_pasted_pairs(text[:LARGEST_PASSAGE]))
    return _of_pairs(source, found, "", text)


def _aligned(source: Source, base: Base, path: str) -> Learned:
    place = Path(path).expanduser()
    if not may_read(place):
        return Learned(source, problem=t("data.not_here"))
    files = aligned_files(place)
    which = Choice("pairs_files", list(files), label="data.pairs_files", form="list").show()
    most, seed = _asked(source, base)
    name = f"{most} {seed} {which} {path}"
    with st.spinner(t("data.reading")):
        found = _once(f"pairs {name}", lambda: read_aligned(*files[which], limit=most, seed=seed))
    return _of_pairs(source, found, shown(which, LONGEST_FILE_NAME), name)


def _of_pairs(source: Source, found: ReadPairs, given: str, name: str) -> Learned:
    count = len(found.pairs)
    st.caption(t("data.pairs_read", count=f"{count:,}"))
    _show_broken(found.broken)
    data = write_pairs(found.pairs)
    return Learned(source, LABELS_OF_REVIEWS, PAIRS_FILE, Given(name=given, count=count), data, count, name)


ASK: dict[str, Callable[[Source, Base], Learned]] = {
    "table": _table,
    "imdb": _imdb,
    "pairs": _pairs,
    "characters": _passage,
    "masked_words": _passage,
}


def choose_data(base: Base) -> Learned:
    """Show what can be learned from and return what was chosen."""
    usual = base.usual
    source_place, network_place, language_place = st.columns(3)
    with source_place:
        source = ask(SOURCE, usual["source"], disabled=base.has_weights)
    for place, control in ((network_place, NETWORK), (language_place, INTO if source == "pairs" else LANGUAGE)):
        with place:
            for one in apply((control,), source):
                ask(one, usual[one.name], disabled=base.has_weights)
    if base.origin is not None and source == usual["source"]:
        kept = base.spec.data
        if base.data is not None:
            st.caption(t("data.kept", learned=plain(learned_words(kept))))
        there = kept.given.count if kept.given and source == "table" else None
        return Learned(source, kept.labels, kept.file, kept.given, base.data, there, base.origin.run)
    if source != usual["source"] and gave_data():
        note, back = st.columns([3, 2], vertical_alignment="center")
        note.caption(t("data.instead"))
        back.button(t("data.preset_own"), icon=":material/undo:", type="tertiary", on_click=forget, args=DATA)
    if source not in ASK:
        return Learned(source)
    try:
        return ASK[source](source, base)
    except (ValueError, OSError, RuntimeError) as error:
        return Learned(source, problem=in_own_words(words_of(error)))
