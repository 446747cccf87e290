"""What clients are refused with: Confluent's codes and words, which users match on."""

from dataclasses import dataclass

from ottla.registry.machine.names import shown_context


@dataclass(slots=True)
class Refusal(Exception):
    """A protocol outcome. It is raised where it is found, and `decide` gives it as the reply."""

    code: int
    """40401 and the like: the first three digits are HTTP's status."""
    message: str

    @property
    def status(self) -> int:
        return int(str(self.code)[:3])

    def __str__(self) -> str:
        return f"{self.code} {self.message}"


def subject_not_found(subject: str) -> Refusal:
    return Refusal(40401, f"Subject '{subject}' not found.")


def version_not_found(version: int) -> Refusal:
    return Refusal(40402, f"Version {version} not found.")


def schema_not_found(which: object = None) -> Refusal:
    return Refusal(40403, "Schema not found" if which is None else f"Schema {which} not found")


def subject_soft_deleted(subject: str) -> Refusal:
    return Refusal(40404, f"Subject '{subject}' was soft deleted.Set permanent=true to delete permanently")


def subject_not_soft_deleted(subject: str) -> Refusal:
    return Refusal(40405, f"Subject '{subject}' was not deleted first before being permanently deleted")


def version_soft_deleted(subject: str, version: int) -> Refusal:
    text = f"Subject '{subject}' Version {version} was soft deleted.Set permanent=true to delete permanently"
    return Refusal(40406, text)


def version_not_soft_deleted(subject: str, version: int) -> Refusal:
    text = f"Subject '{subject}' Version {version} was not deleted first before being permanently deleted"
    return Refusal(40407, text)


def no_compatibility_set(subject: str) -> Refusal:
    return Refusal(40408, f"Subject '{subject}' does not have subject-level compatibility configured")


def no_mode_set(subject: str) -> Refusal:
    return Refusal(40409, f"Subject '{subject}' does not have subject-level mode configured")


def incompatible(subject: str, messages: list[str]) -> Refusal:
    text = f'Schema being registered is incompatible with an earlier schema for subject "{subject}", details: '
    return Refusal(40901, f"{text}[{', '.join(messages)}]")


def invalid_schema(text: str) -> Refusal:
    return Refusal(42201, text)


def invalid_version(said: str) -> Refusal:
    text = f"The specified version '{said}' is not a valid version id. "
    return Refusal(42202, f'{text}Allowed values are between [1, 2^31-1] and the string "latest"')


def invalid_level() -> Refusal:
    levels = "none, backward, forward, full, backward_transitive, forward_transitive, and full_transitive"
    return Refusal(42203, f"Invalid compatibility level. Valid values are {levels}")


def invalid_mode() -> Refusal:
    return Refusal(42204, "Invalid mode. Valid values are READWRITE, READONLY, READONLY_OVERRIDE, IMPORT, and FORWARD")


def not_permitted(text: str) -> Refusal:
    return Refusal(42205, text)


def read_only(subject: str) -> Refusal:
    return not_permitted(f"Subject {subject or None} in context {shown_context(subject)} is in read-only mode")


def referenced(subject: str, version: int) -> Refusal:
    key = f"{{magic=1,keytype=SCHEMA,subject={subject},version={version}}}"
    return Refusal(42206, f"One or more references exist to the schema {key}.")


def invalid_subject(subject: str) -> Refusal:
    return Refusal(42208, f"The specified subject '{subject}' is not a valid.")


def too_large() -> Refusal:
    return Refusal(42209, "Register operation failed because schema is too large")


def invalid_rules(text: str) -> Refusal:
    return Refusal(42210, text)


def context_not_empty(context: str) -> Refusal:
    return Refusal(42211, f"The specified context '{context}' is not empty.")


def store_failed(text: str) -> Refusal:
    return Refusal(50001, text)


def timed_out(text: str) -> Refusal:
    return Refusal(50002, text)


def forwarding_failed(text: str) -> Refusal:
    return Refusal(50003, text)


def unknown_leader(text: str) -> Refusal:
    return Refusal(50004, text)
