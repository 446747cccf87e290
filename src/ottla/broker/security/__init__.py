"""What clients may do: the `authorizer` is asked with a client's principal and host, an operation and a resource."""
