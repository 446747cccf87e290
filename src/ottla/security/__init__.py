"""Who somebody is and what he may do: cores without I/O, used by brokers, controllers and the services beside them.

`acls` is the decision of Kafka's StandardAuthorizer: `AclIndex` is fed with entries one by one, as the metadata log
tells of them, and `Rules` answers (principal, host, operation, resource) with a verdict and the rule it rests on.
"""
