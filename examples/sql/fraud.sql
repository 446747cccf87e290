-- Fraud by windows: a card that is used too often, for too much, or in two places at once.
--
--   ottla sql run examples/sql/fraud.sql
--
-- The alarms of all three rules come together in the stream ALARMS.

CREATE STREAM payments (card STRING KEY, amount DECIMAL(10, 2), shop STRING, lat DOUBLE, lon DOUBLE)
    WITH (KAFKA_TOPIC='payments', VALUE_FORMAT='JSON', PARTITIONS=3);

CREATE TABLE busy_cards AS
    SELECT card, COUNT(*) AS payments, SUM(amount) AS total
    FROM payments
    WINDOW HOPPING (SIZE 10 MINUTES, ADVANCE BY 5 MINUTES, GRACE PERIOD 1 MINUTE)
    GROUP BY card
    HAVING COUNT(*) > 3 OR SUM(amount) > 1000.00;

CREATE STREAM payments_again AS SELECT card, amount, shop, lat, lon FROM payments;

CREATE STREAM alarms AS
    SELECT a.card AS card,
           GEO_DISTANCE(a.lat, a.lon, b.lat, b.lon) AS km,
           a.shop AS first_shop,
           b.shop AS second_shop
    FROM payments a
    JOIN payments_again b WITHIN (0 SECONDS, 10 MINUTES) GRACE PERIOD 1 MINUTE ON a.card = b.card
    WHERE a.shop <> b.shop AND GEO_DISTANCE(a.lat, a.lon, b.lat, b.lon) > 100;
