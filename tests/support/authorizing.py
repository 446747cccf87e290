"""An authorizer by a function, for tests of what is asked and of what follows from the answer."""

from ottla.broker.security.authorizer import AllowAll, Rights, Underway
from ottla.model.permissions import Operation, Resource


class ByFunction(AllowAll):
    """Whoever extends it says what it `allows`."""

    __slots__ = ()

    def for_client(self, principal: str, host: str, underway: Underway) -> Rights:
        return Rights(self.allows, self.allows, self._somewhere, self.allows)

    def _somewhere(self, operation: Operation, resource: Resource) -> bool:
        return self.allows(operation, resource, "")

    def allows(self, operation: Operation, resource: Resource, name: str) -> bool:
        raise NotImplementedError
