-- A row of usual values, one of those at the edges, one of nulls.
INSERT INTO types (b, i2, i4, i8, f4, f8, n, n2, d, m, t, v, c, raw, u, j, jb, day, tm, tm3, ttz, ts, ts3, tz, tz0, iv, e,
  bit1, bit9, vb, ip, net, mac, r, tr, x, p, ai, at, an, ad, atz, ae, au, ab, af8, needed, needed_t) VALUES
 (true, -3, 70000, 1699999973376, 1.25, 12345678.5, 123.4500, 1.5, 2.125, 1234.5, E'hé "q" \\ \n ', 'v', 'ch',
  '\x00ff10', '76019d1a-ad2e-4b22-96e9-1a6d6543c818', '{"a": [1, 2]}', '{"b":null}', '2024-02-29', '12:34:56.789012',
  '01:02:03.4', '12:00:00+02', '2024-02-29 12:34:56.789012', '1969-12-31 23:59:59.999', '2024-02-29 12:34:56+01',
  '2024-02-29 12:34:56.9+00', '1 year 2 mons -3 days 04:05:06.7', 'it''s fine', B'1', B'101010101', B'101', '10.0.0.1/8',
  '10.0.0.0/8', '08:00:2b:01:02:03', '[1,5)', '[2024-01-01 00:00:00+00,)', '<a>b</a>', '(1.5,-2)', '{1,NULL,3}',
  '{a,"b c",NULL,"q\""}', '{1.5,2.25}', '{2024-02-29,1969-12-31}', '{2024-02-29 12:34:56+00}', '{sad,ok}',
  '{76019d1a-ad2e-4b22-96e9-1a6d6543c818}', '{t,f,NULL}', '{1.5,NaN,Infinity}', 1, 'x'),
 (false, 32767, NULL, -9223372036854775808, 'NaN', 'Infinity', -0.00100, -12345678.99, 0, -0.5, '', '', '', '', NULL, 'null',
  '[]', '1500-01-01', '00:00:00', '23:59:59.999', '00:00:00-11:30', '1500-01-01 00:00:00', '2262-04-11 23:47:16.854',
  'infinity', '2024-02-29 12:34:56.4+00', '-1 mons +1 day -00:00:01', 'sad', B'0', B'000000000', B'', '::1', '::/0',
  'ff:ff:ff:ff:ff:ff', 'empty', 'empty', NULL, '(0,0)', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', 2, ''),
 (NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
  NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
  NULL, NULL, NULL, NULL, NULL, NULL, 3, 'n')
