"""Interactive queries: the contents of stores, served from views that follow the changelog topics. No Spark here."""
