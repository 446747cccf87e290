"""Keys that both kinds of tables have."""

from typing import Annotated, Literal

from msgspec import Meta

from ottla.connect import spi


class TableConfig(spi.Config, kw_only=True):
    insert_mode: Annotated[
        Literal["insert", "upsert"], Meta(description="upsert replaces the row of the same key.")
    ] = "insert"
    pk_mode: Annotated[
        Literal["none", "record_key", "record_value"], Meta(description="Where a row's key is found, for upserts.")
    ] = "none"
    pk_fields: Annotated[
        tuple[str, ...], Meta(description="Columns of the key; for a key of one value, the column's name.")
    ] = ()
    delete_enabled: Annotated[bool, Meta(description="A tombstone deletes the row of its key.")] = False
    auto_create: Annotated[bool, Meta(description="Tables that are not there are made.")] = True
    auto_evolve: Annotated[bool, Meta(description="Columns that a table lacks are added.")] = True
    partition_fields: Annotated[
        tuple[str, ...], Meta(description="Columns that the table's files are laid out by.")
    ] = ()
    compaction_commits: Annotated[
        int, Meta(ge=0, description="Small files are put together after so many commits; 0: never.")
    ] = 100
    s3_region: Annotated[str, Meta(description="Of the bucket.")] = "us-east-1"
    store_url: Annotated[str, Meta(description="Of a store that is not Amazon's, as http://host:9000.")] = ""
    aws_access_key_id: Annotated[str, Meta(description="Who asks; else what the surroundings say.")] = ""
    aws_secret_access_key: Annotated[spi.Secret, Meta(description="His secret.")] = ""

    def check(self) -> None:
        """What two keys say together. Raises ConfigRefused."""
        if self.insert_mode == "upsert" and self.pk_mode == "none":
            raise spi.ConfigRefused("pk.mode", "upsert needs a key: record_key or record_value")
        if self.delete_enabled and (self.insert_mode != "upsert" or self.pk_mode != "record_key"):
            raise spi.ConfigRefused("delete.enabled", "needs insert.mode=upsert and pk.mode=record_key")
        if self.pk_mode == "record_value" and not self.pk_fields:
            raise spi.ConfigRefused("pk.fields", "is missing: which columns of the value are the key")
