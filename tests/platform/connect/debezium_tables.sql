-- A column of every usual type, and tables with keys and replica identities of every kind.
CREATE TYPE mood AS ENUM ('sad', 'ok', 'it''s fine');
CREATE DOMAIN price AS numeric(8, 3);
CREATE TABLE types (
  id serial PRIMARY KEY, b bool, i2 smallint, i4 int DEFAULT 42, i8 bigint, f4 real, f8 double precision DEFAULT 1.5,
  n numeric, n2 numeric(10, 2), d price, m money, t text DEFAULT 'it''s', v varchar(20), c char(5), raw bytea, u uuid,
  j json, jb jsonb, day date, tm time, tm3 time(3), ttz timetz, ts timestamp, ts3 timestamp(3), tz timestamptz,
  tz0 timestamptz(0), iv interval, e mood DEFAULT 'ok', bit1 bit, bit9 bit(9), vb varbit(12), ip inet, net cidr,
  mac macaddr, r int4range, tr tstzrange, x xml, p point, ai int[], at text[], an numeric(6,2)[], ad date[],
  atz timestamptz[], ae mood[], au uuid[], ab bool[], af8 float8[], needed int NOT NULL DEFAULT 7, needed_t text NOT NULL
);

CREATE TABLE pairs (a int, b text, v text, PRIMARY KEY (b, a));
CREATE TABLE whole (id int PRIMARY KEY, v text, big text);
ALTER TABLE whole REPLICA IDENTITY FULL;
CREATE TABLE keyless (a int, b text);
ALTER TABLE keyless REPLICA IDENTITY FULL;
CREATE TABLE toasted (id int PRIMARY KEY, n int, big text, raw bytea, arr text[]);
ALTER TABLE toasted ALTER COLUMN big SET STORAGE EXTERNAL, ALTER COLUMN raw SET STORAGE EXTERNAL,
  ALTER COLUMN arr SET STORAGE EXTERNAL;
CREATE TABLE "odd Name" ("the id" int PRIMARY KEY, "a.b" text);
INSERT INTO pairs VALUES (1, 'one', 'x'), (2, 'two', NULL);
INSERT INTO keyless VALUES (1, 'k');
