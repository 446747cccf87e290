"""What a person is told of a trace of Java and Python."""

import pytest

from ottla.pipelines.failures import told

TRACE = """Job aborted due to stage failure: Task 0 failed 1 times: PythonException: Traceback (most recent call last):
  File "/lib/ottla/streams/tasks/task.py", line 184, in process
    source.process(record)
  File "/home/ada/app.py", line 7, in shout
    return 1 // 0
ZeroDivisionError: integer division or modulo by zero

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "/lib/pyspark/worker.py", line 3000, in main
    process()
ottla.streams.errors.StreamsError: processing failed at lines-0 offset 1: ZeroDivisionError: integer division
  File "/home/ada/app.py", line 7, in shout
    return 1 // 0

\tat org.apache.spark.api.python.BasePythonRunner$ReaderIterator.handlePythonException(PythonRunner.scala:570)
=== Streaming Query ===
Identifier: word-count
"""


def test_the_last_exception_of_python_is_told_with_the_users_own_lines() -> None:
    assert told(Exception(TRACE)) == (
        "processing failed at lines-0 offset 1: ZeroDivisionError: integer division\n"
        '  File "/home/ada/app.py", line 7, in shout\n'
        "    return 1 // 0"
    )


def test_an_exception_without_python_is_told_by_its_first_line() -> None:
    assert told(Exception("\nOut of space\n\tat java.lang.Thread.run")) == "Out of space"


BY_PY4J = """[FOREACH_BATCH_USER_FUNCTION_ERROR] An error occurred in the user provided function in foreach batch sink.
Traceback (most recent call last):
  File "/lib/py4j/protocol.py", line 327, in get_return_value
    raise Py4JJavaError(
py4j.protocol.Py4JJavaError: An error occurred while calling o406.getResult.
: org.apache.spark.SparkException: Exception thrown in awaitResult:
	at org.apache.spark.util.SparkThreadUtils$.awaitResult(SparkThreadUtils.scala:70)
Caused by: org.apache.spark.SparkException: [CANNOT_WRITE_STATE_STORE.CANNOT_COMMIT] Error writing state store files.
	at org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider.commit(RocksDB.scala:722)
"""
DENIED = """Caused by: org.apache.hadoop.fs.s3a.AWSS3IOException: upload on state/1.sst: Access Denied (Service: S3)
	at org.apache.hadoop.fs.s3a.S3AUtils.translateException(S3AUtils.java:386)
Caused by: software.amazon.awssdk.services.s3.model.S3Exception: Access Denied (Service: S3)
	... 40 more
"""
REFUSED = """Caused by: java.net.ConnectException: Connection refused
	at java.base/sun.nio.ch.Net.pollConnect(Native Method)
"""


@pytest.mark.parametrize(
    ("causes", "says"),
    [
        (DENIED, "AWSS3IOException: upload on state/1.sst: Access Denied (Service: S3)"),
        (DENIED + REFUSED, "ConnectException: Connection refused"),
        ("", "SparkException: [CANNOT_WRITE_STATE_STORE.CANNOT_COMMIT] Error writing state store files."),
    ],
)
def test_what_java_throws_below_python_is_told_by_its_innermost_cause_and_what_that_was_about(
    causes: str, says: str
) -> None:
    assert told(Exception(BY_PY4J + causes)) == says
