"""An application at work on Spark: here, and in `ottla.pipelines`, pyspark is imported.

`application` plans, makes internal topics (`topics`) and starts a query for each part of the plan; `frames` makes the
data frame of a query: columns (`native`, `expression_columns`, `serde_columns`), Python stages (`stages`) or tasks with
state (`stateful`, `paged_state`), to which records travel in `cells`. `windowing` judges lateness in front of an
aggregate of Spark's. `config` are the settings, `state_directory` what lies on the disk, `reset` the way back to the
beginning.

What a start finds of a former run is judged by `recovery`: a checkpoint that fits, or changelogs, from which tasks
restore their stores (`changelogs`, told to listeners by `restore_listener`). `reaching` is how far tasks have come,
committed with the offsets; `instances` lets one of several processes be active and others stand by.
"""
