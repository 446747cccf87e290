-- Tables as change data capture leaves them, joined by foreign key: every order with its customer, and with the
-- customer's town, whichever of them changes.
--
--   ottla sql run examples/sql/shop.sql

CREATE TABLE customers (id INT PRIMARY KEY, name STRING, town INT)
    WITH (KAFKA_TOPIC='shop.customers', VALUE_FORMAT='JSON', PARTITIONS=1);
CREATE TABLE towns (id INT PRIMARY KEY, name STRING)
    WITH (KAFKA_TOPIC='shop.towns', VALUE_FORMAT='JSON', PARTITIONS=1);
CREATE TABLE orders (id INT PRIMARY KEY, customer INT, total DECIMAL(8, 2))
    WITH (KAFKA_TOPIC='shop.orders', VALUE_FORMAT='JSON', PARTITIONS=1);

CREATE TABLE full_orders AS
    SELECT o.id AS id, o.total AS total, c.name AS customer, c.town AS town
    FROM orders o
    LEFT JOIN customers c ON o.customer = c.id;

CREATE TABLE town_orders AS
    SELECT f.id AS id, f.total AS total, f.customer AS customer, t.name AS town
    FROM full_orders f
    JOIN towns t ON f.town = t.id;
