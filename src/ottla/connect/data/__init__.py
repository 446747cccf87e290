"""Connect's data: what a record is between a connector, the transforms and the converters.

`schema` and `struct` are Connect's Schema and Struct, `logical` its four logical types, `record` a record with its
headers. Values are plain Python, and what Java tells by class is told here by the schema or, without one, so:

| Java                    | with a schema      | without                                         |
|-------------------------|--------------------|-------------------------------------------------|
| Byte, Short, Integer    | int                | `Int8`, `Int16`, `Int32` (an int that remembers) |
| Long · Float · Double   | int · float · float | int · `Float32` · float                        |
| Boolean, String, byte[] | bool, str, bytes   | the same                                        |
| List, Map, Struct       | list, dict, Struct | list, dict                                      |
| BigDecimal              | decimal.Decimal    | the same                                        |
| java.util.Date          | `Instant`          | the same                                        |

`types` has those few classes; `values` turns values into others (Java's `Values`: headers are written and read by it,
`parsing` has the reader), `java_text` writes them as `toString` does, which users see in files and messages. `dates` and
`date_format` are Java's calendar and SimpleDateFormat. `errors` are Java's exceptions, which dead letters name by class.
"""
