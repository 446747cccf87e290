"""The stores of a task, over any `StoreBackend`."""
