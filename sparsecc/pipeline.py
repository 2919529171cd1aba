"""Running passes by name: specs such as ``select-formats{strategy=inferred},sparsify``, snapshots, times."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields
from time import perf_counter
from typing import Any

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from sparsecc.diagnostics import PassError, SparseccError, did_you_mean
from sparsecc.dialects.text.printer import print_module
from sparsecc.frontends.mlir_text import parse_module, verify_module
from sparsecc.plugins import pass_class


class BadPassSpec(PassError):
    text = "the pipeline {spec!r} can't be read at {where!r}"
    help_text = "write passes as name{{option=value,option=value}}, separated by commas"


class UnknownOption(PassError):
    text = "pass {name} has no option {option!r}"


class RepeatedOption(PassError):
    text = "option {option} of pass {name} is given twice"
    help_text = "leave one of the two out"


class BadOption(PassError):
    text = "option {option} of pass {name} wants {wanted}, not {value!r}"


class PassFailed(PassError):
    text = "after pass {name} the module does not verify: {problem}"


def parse_spec(spec: str) -> list[tuple[str, dict[str, str]]]:
    """Names and options of a pipeline. Raises BadPassSpec, RepeatedOption."""
    found: list[tuple[str, dict[str, str]]] = []
    at = 0
    pattern = re.compile(r"\s*([A-Za-z][\w-]*)\s*(?:\{([^{}]*)\})?\s*(,|$)")
    while at < len(spec):
        match = pattern.match(spec, at)
        if match is None:
            raise BadPassSpec(spec=spec, where=spec[at:])
        options: dict[str, str] = {}
        for item in re.split(r"[,\s]+", match[2].strip()) if match[2] and match[2].strip() else []:
            key, sign, value = item.partition("=")
            if not sign:
                raise BadPassSpec(spec=spec, where=item)
            if key.replace("-", "_") in options:
                raise RepeatedOption(name=match[1], option=key)
            options[key.replace("-", "_")] = value
        found.append((match[1], options))
        at = match.end()
    return found


def make_pass(name: str, options: Mapping[str, str] = {}) -> Any:
    """A pass with its options; they are the fields of its dataclass."""
    cls = pass_class(name)
    known = {f.name: f for f in fields(cls) if f.name != "name"}
    values: dict[str, Any] = {}
    for option, text in options.items():
        if option not in known:
            raise UnknownOption(name=name, option=option, help=did_you_mean(option, list(known)))
        values[option] = _read(name, option, text, known[option].default)
    return cls(**values)


def _read(name: str, option: str, text: str, default: object) -> object:
    if isinstance(default, bool):
        if text.lower() not in ("true", "false", "1", "0"):
            raise BadOption(name=name, option=option, wanted="true or false", value=text)
        return text.lower() in ("true", "1")
    if isinstance(default, int):
        if not re.fullmatch(r"-?\d+", text):
            raise BadOption(name=name, option=option, wanted="an integer", value=text)
        return int(text)
    return text if default is not MISSING else text


def run_passes(
    module: ModuleOp,
    names: Sequence[tuple[str, Mapping[str, str]]],
    *,
    times: dict[str, float] | None = None,
    verify: bool = False,
    after: Callable[[str, ModuleOp], None] | None = None,
) -> ModuleOp:
    """Run passes in place; ``times`` collects milliseconds, ``after`` sees the module after each pass."""
    context = Context()
    for name, options in names:
        instance = make_pass(name, options)
        start = perf_counter()
        instance.apply(context, module)
        if times is not None:
            times[name] = times.get(name, 0.0) + (perf_counter() - start) * 1e3
        if verify:
            try:
                verify_module(module)
            except SparseccError as error:
                raise PassFailed(name=name, problem=error.message) from error
        if after is not None:
            after(name, module)
    return module


def run_text(
    text: str, name: str, spec: str, print_after_all: bool = False, verify_each: bool = False
) -> str:
    """``sparsecc opt``: the text of a module after a pipeline (with each stage on the way, if asked for)."""
    passes = parse_spec(spec)
    for pass_name, options in passes:
        make_pass(pass_name, options)
    module = parse_module(text, name)
    parts: list[str] = []

    def after(pass_name: str, module: ModuleOp) -> None:
        if print_after_all:
            parts.append(f"// -----// IR after {pass_name} //----- //\n{print_module(module)}")

    run_passes(module, passes, verify=verify_each, after=after)
    verify_module(module)
    return "\n".join(parts) if print_after_all else print_module(module)
