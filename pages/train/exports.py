"""Download buttons for a run; each file is made when it is asked for."""

import io
import zipfile
from collections.abc import Callable

import streamlit as st

from pages.film.figures.page import to_html
from pages.film.figures.stills import curve_rows, embedding_gif
from pages.film.mount import film_words
from pages.film.reading import reading
from pages.kit.exports import rows_csv
from pages.kit.runs import learned_words, run_list
from pages.language import language, strings, t
from pages.train.film import method_chosen
from transformer_core.training.runs.exchange.script import files_needed, repeat_script, script_zip
from transformer_core.training.runs.store.folder import BUNDLE
from transformer_core.training.runs.store.run_store import RunStore

CARD = "card.md"
File = tuple[str, str, str, Callable[[], str | bytes]]  # key of its word, ending, type, what makes it


def run_zip(run: str) -> bytes:
    """Return a run as one zip, to be imported here or elsewhere."""
    buffer = io.BytesIO()
    run_list().export_zip(run, buffer)
    return buffer.getvalue()


def bundle_zip(store: RunStore) -> bytes:
    """Return a run's model as a zip of its bundle."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for path in sorted((store.folder / BUNDLE).iterdir()):
            archive.write(path, f"run_{store.id}/{path.name}")
    return buffer.getvalue()


def files_of(store: RunStore) -> list[File]:
    """Return the files that a run can be had as, in the language and with the colours of the person who asks."""
    said, plain = strings("film"), strings("film", "en")
    page_words, lang, method = film_words(), language(), method_chosen()
    theme = st.context.theme.type or "light"
    name, learned = store.spec.name, learned_words(store.spec.data)

    def gif() -> bytes:
        film = reading(store.id).film()
        return embedding_gif(film, said, method=method, theme=theme, plain_words=plain)

    def html() -> str:
        return to_html([reading(store.id).film()], page_words, title=name, learned=[learned], language=lang)

    def csv() -> bytes:
        return rows_csv(curve_rows(reading(store.id).film())).encode("utf-8-sig")

    files: list[File] = [
        ("train_export.html", "html", "text/html", html),
        ("train_export.csv", "csv", "text/csv", csv),
        (
            ("train_export.script_zip", "script.zip", "application/zip", lambda: script_zip(store))
            if files_needed(store.spec)
            else ("train_export.script", "py", "text/x-python", lambda: repeat_script(store.spec, store.facts()))
        ),
        ("train_export.run", "zip", "application/zip", lambda: run_zip(store.id)),
    ]
    if store.points() is not None:
        files.insert(0, ("train_export.gif", "gif", "image/gif", gif))
    card = store.folder / BUNDLE / CARD
    if card.is_file():
        files.append(("train_export.bundle", "bundle.zip", "application/zip", lambda: bundle_zip(store)))
        files.append(("train_export.card", "md", "text/markdown", lambda: card.read_text(encoding="utf-8")))
    return files


def export_run(store: RunStore) -> None:
    """Offer a run as files."""
    box = st.popover(t("export.heading"), icon=":material/download:", key="train_export_open", on_change="rerun")
    if not box.open:
        return
    with box:
        st.caption(t("train_export.note"))
        for word, ending, mime, make in files_of(store) if store.frames() else ():
            st.download_button(
                t(word),
                make,
                f"run_{store.id}.{ending}",
                mime,
                key=f"export {word}",
                on_click="ignore",
                width="stretch",
            )
