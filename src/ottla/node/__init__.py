"""The composition root: settings in, a running node out. The only place that knows everybody.

Nothing is imported here: the services beside a node are processes of their own, start from this room as well (`alone`,
`sql_process`), and have no broker in them.
"""
