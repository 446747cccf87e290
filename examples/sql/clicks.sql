-- A click stream in sessions: who came, for how long, from where to where, and what each page led to.
--
--   ottla sql run examples/sql/clicks.sql
--
-- A session ends when a visitor was quiet for half an hour. One that grows replaces what was said of it before.

CREATE STREAM clicks (visitor STRING KEY, page STRING, status INT, agent STRING)
    WITH (KAFKA_TOPIC='clicks', VALUE_FORMAT='JSON', PARTITIONS=3);

CREATE STREAM visits AS
    SELECT visitor, LCASE(page) AS page, status
    FROM clicks
    WHERE NOT LCASE(COALESCE(agent, '')) LIKE '%bot%';

CREATE TABLE sessions AS
    SELECT visitor,
           EARLIEST_BY_OFFSET(page) AS first_page,
           LATEST_BY_OFFSET(page) AS last_page,
           COUNT(*) AS pages,
           WINDOWEND - WINDOWSTART AS ms
    FROM visits
    WINDOW SESSION (30 MINUTES, GRACE PERIOD 5 MINUTES)
    GROUP BY visitor;

CREATE TABLE errors_per_minute AS
    SELECT page, COUNT(*) AS errors
    FROM visits
    WINDOW TUMBLING (SIZE 1 MINUTE, GRACE PERIOD 10 SECONDS)
    WHERE status >= 500
    GROUP BY page
    HAVING COUNT(*) >= 2;
