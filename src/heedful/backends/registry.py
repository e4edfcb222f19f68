"""Which implementation stands in for a part, why one cannot, and the one function that replaces parts.

A backend is a way to run parts faster than the core does. An implementation is registered for a part of exactly one
type: a subclass may do anything, so it is never replaced. Two kinds of backends share the registry:

    "cpu", "triton", "int8"      replace single modules inside a copy of the model: `use_backend`
    "native", "single_step"      run a whole model, or its decoder's step, by themselves: `runtime.prepare`
"""

from collections.abc import Callable, Iterable, Iterator
from copy import deepcopy
from typing import Any, TypeVar

from torch import nn

from ..errors import unknown
from .description import Reason, only

Check = Callable[[Any], Iterable[str]]  # of a model: what is missing here
I = TypeVar("I", bound="type[Implementation]")  # noqa: E741


class Implementation:
    """Beside the class of a part, or alone: one that may take the part's place."""

    @classmethod
    def refusals(cls, part: Any) -> Iterable[Reason]:
        """Why this part, whose type is exactly the registered one, cannot be replaced. Paths begin at the part."""
        return ()


class ModuleImplementation(Implementation):
    """One that replaces a module. Its class is beside the part's own: everything it does not override is the core's."""

    @classmethod
    def refusals(cls, part: Any) -> Iterable[Reason]:
        """What the part has beyond what was known of its type."""
        return only(part, type(part))

    @classmethod
    def from_part(cls, part: Any) -> Any:
        """A new module with the tensors, children and settings of the part."""
        made = cls.__new__(cls)
        vars(made).update(vars(part))
        return made

    def finish(self, context: Any) -> None:
        """Called once, when all parts of the model were replaced; the context is what `use_backend` was given."""


IMPLEMENTATIONS: dict[tuple[type[nn.Module], str], type[Implementation]] = {}
MACHINE: dict[str, Check] = {}


def register(backend: str, *parts: type[nn.Module]) -> Callable[[I], I]:
    """A decorator: the class implements these types of parts for a backend."""

    def add(implementation: I) -> I:
        for part in parts:
            IMPLEMENTATIONS[part, backend] = implementation
        return implementation

    return add


def device_type(module: nn.Module) -> str | None:
    """Where a model is, "cpu" or "cuda"; None where it has no parameters."""
    return next((tensor.device.type for tensor in module.parameters()), None)


def machine_check(backend: str) -> Callable[[Check], Check]:
    """A decorator: the function says why this machine, or where the model is on it, rules a backend out."""

    def add(check: Check) -> Check:
        MACHINE[backend] = check
        return check

    return add


def supports(module: nn.Module, backend: str) -> list[Reason]:
    """Why a model cannot use a backend: the machine's reasons, then the model's. An empty list means that it can.

    Where a backend replaces single modules, each reason is about a part that stays the core's; the others are
    replaced all the same.
    """
    machine = MACHINE[backend](module) if backend in MACHINE else ()
    return [*(Reason("", what) for what in machine), *refusals(module, backend)]


def refusals(module: nn.Module, backend: str) -> list[Reason]:
    """The model's reasons alone, whatever the machine is."""
    parts = _implementations(backend)
    if not any(issubclass(made, ModuleImplementation) for made in parts.values()):  # a model is taken whole or not
        if type(module) in parts:
            return list(parts[type(module)].refusals(module))
        kinds = " and ".join(sorted(kind.__name__ for kind in parts))
        return [Reason("", f"{backend} runs models that are exactly {kinds}, not {type(module).__name__}")]
    found = (reason.below(path) for path, part in module.named_modules() for reason in _part_refusals(part, parts))
    return list(dict.fromkeys(found))


def _implementations(backend: str) -> dict[type[nn.Module], Any]:
    parts = {kind: made for (kind, name), made in IMPLEMENTATIONS.items() if name == backend}
    if not parts:
        raise ValueError(unknown("backend", backend, {name for _, name in IMPLEMENTATIONS}))
    return parts


def _part_refusals(part: nn.Module, parts: dict[type[nn.Module], Any]) -> Iterator[Reason]:
    kind = type(part)
    if kind in parts:
        yield from parts[kind].refusals(part)
    elif base := next((base for base in kind.__mro__ if base in parts), None):
        yield Reason("", f"{kind.__name__} is another class than {base.__name__}, and may do anything")


def shared_copy(module: nn.Module) -> Any:
    """A copy of the modules that shares every parameter and buffer."""
    return deepcopy(module, {id(tensor): tensor for tensor in (*module.parameters(), *module.buffers())})


def use_backend(module: nn.Module, backend: str, context: Any = None) -> Any:
    """A copy that shares every parameter and buffer, in which the backend's implementations replace parts.

    Parameters keep their names, and parts that are shared stay shared. What has no implementation, or is refused by
    it, stays the core's. `context` is handed to every replaced part: what they share in a pass, for "triton".
    """
    kinds = _implementations(backend)
    if not all(issubclass(kind, ModuleImplementation) for kind in kinds.values()):
        raise ValueError(f"{backend} runs whole models and replaces no modules; prepare(module) uses it")
    copy = shared_copy(module)
    old = list(copy.modules())
    made: dict[int, Any] = {}
    for part in old:  # before any is replaced: whoever surrounds a part looks at what it was
        if type(part) in kinds and not list(kinds[type(part)].refusals(part)):
            made[id(part)] = kinds[type(part)].from_part(part)
    for parent in [*old, *made.values()]:
        for name, child in parent._modules.items():
            if id(child) in made:
                parent._modules[name] = made[id(child)]
    for part in made.values():
        part.finish(context)
    return made.get(id(copy), copy)
