"""What a person is told of a trace of Java and Python."""

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
