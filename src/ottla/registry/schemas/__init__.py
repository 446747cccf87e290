"""The three languages of schemas, each a package of its own behind `base.Language`."""
