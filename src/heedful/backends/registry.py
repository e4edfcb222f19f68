"""The registry of backends: which implementation replaces a part, and why one cannot.

An implementation is registered for parts of exactly one type: a subclass may do anything, so it is never replaced. Two
kinds of backends share the registry:

    "cpu", "triton", "int8"      replace single modules in a copy of the model: `use_backend`
    "native", "single_step"      run a whole model, or its decoder's step, by themselves: `runtime.prepare`
"""

from collections.abc import Callable, Iterable, Iterator
from copy import deepcopy
from typing import Any, TypeVar

import torch
from torch import nn

from ..errors import unknown
from .description import Reason, only

Check = Callable[[Any], Iterable[str]]  # takes a model, returns what this machine lacks for it
I = TypeVar("I", bound="type[Implementation]")  # noqa: E741


class Implementation:
    """A class that replaces a part."""

    @classmethod
    def refusals(cls, part: Any) -> Iterable[Reason]:
        """Return why this part, of exactly the registered type, cannot be replaced. Paths begin at the part."""
        return ()


class ModuleImplementation(Implementation):
    """A mixin for subclasses of a module class that replace the module. What they do not override runs in the core."""

    @classmethod
    def refusals(cls, part: Any) -> Iterable[Reason]:
        return only(part, type(part))

    @classmethod
    def from_part(cls, part: Any) -> Any:
        """Return a new module with the tensors, children and settings of the part."""
        module = cls.__new__(cls)
        vars(module).update(vars(part))
        return module

    def finish(self, context: Any) -> None:
        """Called once, after all parts of the model were replaced, with the context from `use_backend`."""


IMPLEMENTATIONS: dict[tuple[type[nn.Module], str], type[Implementation]] = {}
MACHINE: dict[str, Check] = {}


def register(backend: str, *parts: type[nn.Module]) -> Callable[[I], I]:
    """Decorate a class that implements these types of parts for a backend."""

    def add(implementation: I) -> I:
        for part in parts:
            IMPLEMENTATIONS[part, backend] = implementation
        return implementation

    return add


def apply(function: type[torch.autograd.Function], *inputs: Any) -> Any:
    """Call `function.apply`, whose result is untyped."""
    return function.apply(*inputs)


def device_type(module: nn.Module) -> str | None:
    """Return the device of a model, such as "cpu" or "cuda"; None if it has no parameters."""
    return next((tensor.device.type for tensor in module.parameters()), None)


def machine_check(backend: str) -> Callable[[Check], Check]:
    """Decorate a function that returns why a model cannot use a backend on this machine or device."""

    def add(check: Check) -> Check:
        MACHINE[backend] = check
        return check

    return add


def supports(module: nn.Module, backend: str) -> list[Reason]:
    """Return why a model cannot use a backend: the machine's reasons, then the model's. It can if the list is empty.

    If the backend replaces single modules, each reason is about a part that runs in the core; the others are replaced.

    Raises:
        ValueError: for an unknown backend.
    """
    machine = MACHINE[backend](module) if backend in MACHINE else ()
    return [*(Reason("", what) for what in machine), *refusals(module, backend)]


def refusals(module: nn.Module, backend: str) -> list[Reason]:
    """Return the reasons of `supports` that do not depend on the machine."""
    parts = _implementations(backend)
    if not any(issubclass(implementation, ModuleImplementation) for implementation in parts.values()):
        if type(module) in parts:
            return list(parts[type(module)].refusals(module))
        kinds = " and ".join(sorted(kind.__name__ for kind in parts))
        return [Reason("", f"{backend} runs models that are exactly {kinds}, not {type(module).__name__}")]
    reasons = (reason.below(path) for path, part in module.named_modules() for reason in _part_refusals(part, parts))
    return list(dict.fromkeys(reasons))


def _implementations(backend: str) -> dict[type[nn.Module], Any]:
    parts = {kind: implementation for (kind, name), implementation in IMPLEMENTATIONS.items() if name == backend}
    if not parts:
        raise ValueError(unknown("backend", backend, {name for _, name in IMPLEMENTATIONS}))
    return parts


def _part_refusals(part: nn.Module, parts: dict[type[nn.Module], Any]) -> Iterator[Reason]:
    kind = type(part)
    if kind in parts:
        yield from parts[kind].refusals(part)
    elif base := next((base for base in kind.__mro__ if base in parts), None):
        yield Reason("", f"{kind.__name__} is a subclass of {base.__name__}, whose behavior may differ")


def shared_copy(module: nn.Module) -> Any:
    """Return a copy of the modules that shares every parameter and buffer."""
    return deepcopy(module, {id(tensor): tensor for tensor in (*module.parameters(), *module.buffers())})


def use_backend(module: nn.Module, backend: str, context: Any = None) -> Any:
    """Return a copy that shares every parameter and buffer, in which the backend's implementations replace parts.

    Parameters keep their names, and shared parts stay shared. Parts without an implementation, or refused by it, run
    in the core. `context` is passed to every replaced part: what they share in a pass, for "triton".

    Raises:
        ValueError: for an unknown backend, or one that replaces no modules.
    """
    kinds = _implementations(backend)
    if not all(issubclass(kind, ModuleImplementation) for kind in kinds.values()):
        raise ValueError(f"{backend} runs whole models and replaces no modules; prepare(module) uses it")
    copy = shared_copy(module)
    parts = list(copy.modules())
    replacements: dict[int, Any] = {}
    for part in parts:  # before any is replaced: the refusals of a part also look at its children
        if type(part) in kinds and not list(kinds[type(part)].refusals(part)):
            replacements[id(part)] = kinds[type(part)].from_part(part)
    for parent in [*parts, *replacements.values()]:
        for name, child in parent._modules.items():
            if id(child) in replacements:
                parent._modules[name] = replacements[id(child)]
    for part in replacements.values():
        part.finish(context)
    return replacements.get(id(copy), copy)
