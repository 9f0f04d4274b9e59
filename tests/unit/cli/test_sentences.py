"""Help texts, meanings of keys in files, and summaries of registries are whole sentences, in words that readers know.

A text is taken for a sentence if it has a capital, a full stop, a length below a bound, and a finite verb from a list.
This is no grammar, but it finds "Number of devices, K." and "Left out, eight.". Nouns that could be verbs ("rounds",
"updates") are not on the list. Words that are verbs where they come first ("run", "list") are on a second one.
"""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator

import click
import pytest
import typer
from pydantic import BaseModel

from fairwave import extensions
from fairwave.cli.main import app
from fairwave.registry import Registry
from fairwave.scenario.group import Group
from fairwave.scenario.loading import preset_names, preset_summary
from fairwave.scenario.parameters import Scenario

VERBS = frozenset(
    re.findall(
        r"\w+",
        """
    is are was has have does do may can cannot must takes take lasts gets get goes go holds hold keeps keep says say
    adds add moves move sends send trains train plans plan averages combines combine follows uses draws draw stands
    stand stores store computes compute processes executes replaced multiplied decides reads depends describes
    misbehave agree joins leaves leave grows transmits misses correlates correlate pays peaks starts divides becomes
    spends costs charges charge fails fail skips covers asks ask stops stop reaches reach assume shortens refuses
    removes remove measures lowers limits catches scores scales scale weights rewards gives give makes make spreads
    pulls pull turns turn needs need apply sets set protects proves prove comes exchange supports bound start find
    continue varies compares moved learn learns writes brings bring split join arrive works attacks knows know shows
    show opens open judge lacks connect requires pools responds respond maximise maximises loads resumes recomputes
    withstands finds sees lists depend places replaces replace follow include replaces
        """,
    )
)
"""Finite verbs that the texts use and that are hardly ever nouns there."""
IMPERATIVES = frozenset(
    re.findall(
        r"\w+",
        """
    add account answer assume audit average build carry check choose compare cut do draw estimate export fetch give
    issue judge list listen load look make measure open override plan play print read record register remove repeat
    replace report reproduce use resume revoke run save search serve show sign spread start store sweep take tell train
    trust try wait write skip also
        """,
    )
)
"""Verbs with which an instruction begins."""
LABELS = re.compile(r"(Default|Default strength|Laws|Schemes|Policies|Trackers): ")
"""What comes before a value or a list of names, which needs no verb."""
PRIVATE = (
    "left out",
    "so many",
    "at will",
    "a line each",
    "goes on",
    "go on with",
    "anew",
    "mend",
    "flatter",
    "is told",
    "tells of",
    "stands still",
    "keeps to",
    "of its own",
    "of his own",
    "do as they should",
    "sent home",
    "goodbye",
    "gets away",
    "gets along",
)
"""Idioms of ours, which say less than the field's words do."""
LONGEST = 34
"""Most words of a sentence."""
SENTENCE_ENDS = re.compile(r"(?<=[.?!])\s+(?=[A-Z'\"(\d-])")


def complaints(text: str) -> list[str]:
    """Why a text is not made of whole sentences."""
    flat = " ".join(text.split())
    found = [f"'{idiom}' in: {flat}" for idiom in PRIVATE if re.search(rf"\b{idiom}\b", flat.lower())]
    for sentence in SENTENCE_ENDS.split(flat):
        words = re.findall(r"[A-Za-z][A-Za-z'-]*", sentence.lower())
        if not re.match(r"[A-Z'\"(\d-]", sentence) or not re.search(r"[.?]$", sentence):
            found.append(f"no capital or no full stop: {sentence}")
        elif len(words) > LONGEST and not LABELS.match(sentence):
            found.append(f"{len(words)} words: {sentence}")
        elif not (LABELS.match(sentence) or words[0] in IMPERATIVES or VERBS & set(words)):
            found.append(f"no verb: {sentence}")
    return found


def commands(command: click.Command, words: str = "fairwave") -> Iterator[tuple[str, click.Command]]:
    yield words, command
    if isinstance(command, click.Group):
        for name, inner in command.commands.items():
            yield from commands(inner, f"{words} {name}")


def prose(text: str) -> Iterator[str]:
    """The paragraphs of a command's help that are not examples."""
    for paragraph in text.split("\n\n"):
        if not re.match(r"\s|\x08|Examples?:|fairwave |Start with:", paragraph):
            yield paragraph.removesuffix(":") + "." if paragraph.endswith(":") else paragraph


def help_texts() -> Iterator[tuple[str, str]]:
    for words, command in commands(typer.main.get_command(app)):
        for paragraph in prose(inspect.cleandoc(command.help or "")):
            yield words, paragraph
        for parameter in command.params:
            text = getattr(parameter, "_meaning", "") or getattr(parameter, "help", "") or ""
            if not {"--install-completion", "--show-completion"} & set(parameter.opts):  # typer's own
                yield f"{words} {parameter.opts[0]}", text


def tables(group: type[Group] = Group) -> Iterator[type[Group]]:
    """Every table of a TOML file that comes with the package, laws included."""
    for law in extensions.FADING.values():  # loads their modules
        assert issubclass(law, Group)
    for module in ("federate.agreement", "federate.device_file", "studies.sweep_file"):
        importlib.import_module(f"fairwave.{module}")
    for inner in group.__subclasses__():
        if inner.__module__.startswith("fairwave."):
            yield inner
        yield from tables(inner)


def meanings() -> Iterator[tuple[str, str]]:
    for table in sorted({*tables()}, key=lambda each: each.__qualname__):
        for key, field in table.model_fields.items():
            yield f"{table.__name__}.{key}", field.description or ""


def summaries() -> Iterator[tuple[str, str]]:
    for registry in vars(extensions).values():
        if isinstance(registry, Registry):
            for name in registry.builtin_names():
                summary = getattr(registry[name], "summary", None)
                if isinstance(summary, str):
                    yield f"{registry.kind} {name}", summary
    for name, law in extensions.FADING.items():
        yield f"fading law {name}", inspect.cleandoc(law.__doc__ or "")
    for name in preset_names():
        yield f"preset {name}", preset_summary(name)


@pytest.mark.parametrize("texts", [help_texts, meanings, summaries])
def test_texts_are_whole_sentences(texts):
    found = {where: why for where, text in texts() if (why := complaints(text))}
    assert not found, "\n".join(f"{where}: {'; '.join(why)}" for where, why in found.items())


def test_nothing_is_overlooked():
    """A text that nobody looks at cannot be found wanting."""
    explained = {where for where, _ in meanings()}
    for name, field in Scenario.model_fields.items():
        group = field.annotation
        if isinstance(group, type) and issubclass(group, BaseModel):
            assert {f"{group.__name__}.{key}" for key in group.model_fields} <= explained, name
    assert {"Settings.quorum", "DeviceFile.key", "Sweep.grid", "Choice.values"} <= explained
    assert {"Rician.k_factor", "Radial.near_m", "Processor.clock_hz", "Column.column"} <= explained
    kinds = {where.rsplit(" ", 1)[0] for where, _ in summaries()}
    assert {
        "scheme",
        "policy",
        "behaviour",
        "defence",
        "aggregator",
        "model",
        "data set",
        "fading law",
        "preset",
    } <= kinds
    assert {"fairwave run --rounds", "fairwave study attacks --share", "fairwave device check endpoint"} <= {
        where for where, _ in help_texts()
    }


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Number of devices, K.",
        "the device trains on wrong classes.",
        "The device trains on wrong classes",
        "Compare these schemes. Left out, eight.",
        "Run this often. Left out, it is the scenario's.",
        "Run so many communication rounds.",
        "An ablation: the benchmark's effort, the proposed noise.",
        "Folder of a run.",
        "Write the file. Default folder of the run.",
        "The device " + "really " * 40 + "trains.",
    ],
)
def test_a_fragment_is_found(text):
    assert complaints(text)
