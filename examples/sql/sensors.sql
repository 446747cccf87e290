-- Dead letters: what cannot be read is neither lost nor in the way. Records that are no JSON of these columns go, as
-- they are, to the topic sensors-dead; readings out of range to the stream ODD_READINGS.
--
--   ottla sql run examples/sql/sensors.sql

SET 'errors.dead.letter.queue.topic.name' = 'sensors-dead';

CREATE STREAM readings (sensor STRING KEY, celsius DOUBLE, taken BIGINT)
    WITH (KAFKA_TOPIC='readings', VALUE_FORMAT='JSON', PARTITIONS=1, TIMESTAMP='taken');

CREATE STREAM good_readings AS
    SELECT sensor, celsius, ROUND(celsius * 9 / 5 + 32, 1) AS fahrenheit
    FROM readings
    WHERE celsius BETWEEN -60 AND 60;

CREATE STREAM odd_readings AS
    SELECT sensor, celsius, CASE WHEN celsius IS NULL THEN 'nothing measured' ELSE 'out of range' END AS reason
    FROM readings
    WHERE celsius IS NULL OR NOT celsius BETWEEN -60 AND 60;
