"""Groups: one module per kind of group and per concern; share and streams groups will have modules beside these."""
