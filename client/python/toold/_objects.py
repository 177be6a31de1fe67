"""What processes and events of both clients have in common: the fields of the wire, as attributes and as items."""

from __future__ import annotations

from typing import Any, Dict, Iterator


class Fields:
    """Fields that are attributes and items. `from` is the attribute `from_`."""

    fields: Dict[str, Any]

    def __getattr__(self, name: str) -> Any:
        # Without this, a copy that has no `fields` yet would look for it here without end.
        if name == "fields":
            raise AttributeError(name)
        try:
            return self.fields["from" if name == "from_" else name]
        except KeyError:
            raise AttributeError(f"{name}: the daemon's answer does not have this field") from None

    def __getitem__(self, name: str) -> Any:
        return self.fields[name]

    def __contains__(self, name: object) -> bool:
        return name in self.fields

    def __iter__(self) -> Iterator[str]:
        return iter(self.fields)

    def __len__(self) -> int:
        return len(self.fields)

    def __dir__(self) -> Any:
        return sorted(set(super().__dir__()) | set(self.fields))

    def keys(self) -> Any:
        return self.fields.keys()

    def get(self, name: str, default: Any = None) -> Any:
        return self.fields.get(name, default)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Fields) and type(self) is type(other) and self.fields == other.data

    __hash__ = object.__hash__


class ProcessState(Fields):
    """The fields of a process, as of the last answer about it."""

    @property
    def _wire_id(self) -> str:
        return str(self.fields["id"])

    def __repr__(self) -> str:
        parts = [str(self.fields.get("id"))]
        parts += [f"({self.fields['name']})"] if self.fields.get("name") else []
        parts += [str(self.fields.get("status"))] if self.fields.get("status") else []
        parts += [str(self.fields["exit_code"])] if self.fields.get("exit_code") is not None else []
        return f"<{type(self).__name__} {' '.join(parts)}>"


class EventState(Fields):
    """The fields of an event. A `lagged` push reports events or output that were missed."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.fields.get('seq', '')} {self.fields.get('type')} {self.fields.get('id')}>"
