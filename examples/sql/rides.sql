-- A materialised view of rides: where each one is now, and what every driver has earned.
--
--   ottla sql run examples/sql/rides.sql
--
-- Rides come as JSON under the ride's id; the view is the topics CURRENT_RIDES and EARNINGS, to be read by anybody.

CREATE STREAM ride_events (ride STRING KEY, driver STRING, state STRING, lat DOUBLE, lon DOUBLE, fare DECIMAL(8, 2))
    WITH (KAFKA_TOPIC='ride-events', VALUE_FORMAT='JSON', PARTITIONS=3);

CREATE TABLE current_rides AS
    SELECT ride,
           LATEST_BY_OFFSET(driver) AS driver,
           LATEST_BY_OFFSET(state) AS state,
           LATEST_BY_OFFSET(lat) AS lat,
           LATEST_BY_OFFSET(lon) AS lon,
           COUNT(*) AS events
    FROM ride_events
    GROUP BY ride;

CREATE TABLE earnings AS
    SELECT driver, COUNT(*) AS rides, SUM(fare) AS earned
    FROM ride_events
    WHERE state = 'paid'
    GROUP BY driver;
