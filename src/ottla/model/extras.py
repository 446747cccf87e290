"""Libraries that an installation may lack: a node alone needs few, pipelines, connectors and SQL bring the others."""


def missing(error: ImportError) -> str:
    """What is missing, and how it is had."""
    if not isinstance(error, ModuleNotFoundError) or error.name is None or error.name.startswith("ottla"):
        return str(error)
    name = error.name.partition(".")[0]
    return f"{name} is not installed: make streams in a clone of ottla, or pip install 'ottla[streams,connect,sql]'"
