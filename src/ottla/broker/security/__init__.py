"""What clients may do. A session asks its `Client`, whose rights come from an `authorizer`: everything is allowed, or
`standard` decides by the ACLs of the metadata image (`ottla.security.acls`) and tells refusals to the `audit` log."""
