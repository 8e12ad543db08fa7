-- The current state of a copy that grows, for DuckDB: views over the Parquet tables of all parts. Run it in the copy's directory.
-- A column that is text in one part, because a value did not fit, is text in its view: exact, and its sum is an error.
-- `union_by_name` does that. Without it, DuckDB would take the types of the first part, and round.

-- Each version of a rep and of a period is a row; the last one counts.
CREATE OR REPLACE VIEW reps AS
SELECT * EXCLUDE (filename, file_row_number)
FROM read_parquet('part-*/reps.parquet', union_by_name = true, filename = true, file_row_number = true)
QUALIFY row_number() OVER (PARTITION BY id ORDER BY filename DESC, file_row_number DESC) = 1;

CREATE OR REPLACE VIEW periods AS
SELECT * EXCLUDE (filename, file_row_number)
FROM read_parquet('part-*/periods.parquet', union_by_name = true, filename = true, file_row_number = true)
QUALIFY row_number() OVER (PARTITION BY id ORDER BY filename DESC, file_row_number DESC) = 1;

-- A payout counts until a later one names it in `supersedes_id`.
CREATE OR REPLACE VIEW all_payouts AS SELECT * FROM read_parquet('part-*/payouts.parquet', union_by_name = true);
CREATE OR REPLACE VIEW payouts AS
SELECT * FROM all_payouts WHERE id NOT IN (SELECT supersedes_id FROM all_payouts WHERE supersedes_id IS NOT NULL);

-- Parts of earlier versions have no rep, period and currency in these tables, so they come from the payout.
CREATE OR REPLACE VIEW line_items AS
SELECT payout_id, payouts.rep_id, payouts.period_id, payouts.currency, lines.id, category, description, amount, deal_id
FROM read_parquet('part-*/line_items.parquet', union_by_name = true) AS lines JOIN payouts ON payouts.id = payout_id;
CREATE OR REPLACE VIEW calculation_steps AS
SELECT payout_id, payouts.rep_id, payouts.period_id, payouts.currency, step, name, strategy, strategy_version, inputs, output_amount, deal_id
FROM read_parquet('part-*/calculation_steps.parquet', union_by_name = true) JOIN payouts ON payouts.id = payout_id;
CREATE OR REPLACE VIEW payroll_files AS SELECT * FROM read_parquet('part-*/payroll_files.parquet', union_by_name = true);

-- Equals the API's /totals as of the last part.
CREATE OR REPLACE VIEW totals AS
SELECT period_id, currency, coalesce(sum(owed), 0) AS owed, count(owed) AS payouts, coalesce(sum(paid), 0) AS paid, count(paid) AS records
FROM (
  SELECT period_id, currency, net_amount AS owed, NULL AS paid FROM payouts
  UNION ALL
  SELECT period_id, currency, NULL AS owed, amount AS paid FROM payroll_files
)
GROUP BY period_id, currency;

-- Empty if all parts are there, in order, and add up to what the manifest of the last one says. Otherwise it names what is wrong.
-- `last-part.json` names the last part. If it is lost itself, the query is an error.
CREATE OR REPLACE MACRO plain(amount) AS CASE WHEN contains(amount, '.') THEN rtrim(rtrim(amount, '0'), '.') ELSE amount END;
CREATE OR REPLACE VIEW problems AS
WITH parts AS (
  SELECT filename, as_of, digest, lag(as_of) OVER in_order AS before_as_of, lag(digest) OVER in_order AS before_digest,
         "after".as_of AS after_as_of, "after".digest AS after_digest, owed, paid
  FROM read_json('part-*/manifest.json', format = 'unstructured', filename = true, columns = {as_of: 'VARCHAR', digest: 'VARCHAR',
       "after": 'STRUCT(as_of VARCHAR, digest VARCHAR)', owed: 'MAP(VARCHAR, VARCHAR)', paid: 'MAP(VARCHAR, VARCHAR)'})
  WINDOW in_order AS (ORDER BY filename)
), last_part AS (
  SELECT * FROM parts ORDER BY filename DESC LIMIT 1
), said AS (
  SELECT 'owed' AS what, unnest(map_keys(owed)) AS currency, unnest(map_values(owed)) AS amount FROM last_part
  UNION ALL
  SELECT 'paid', unnest(map_keys(paid)), unnest(map_values(paid)) FROM last_part
), counted AS (
  SELECT 'owed' AS what, currency, CAST(sum(net_amount) AS VARCHAR) AS amount FROM payouts GROUP BY currency
  UNION ALL
  SELECT 'paid', currency, CAST(sum(amount) AS VARCHAR) FROM payroll_files GROUP BY currency
)
SELECT filename || ' does not continue the part before it' AS problem
FROM parts
WHERE after_as_of IS DISTINCT FROM before_as_of OR after_digest IS DISTINCT FROM before_digest
UNION ALL
SELECT part || ' is lost, or is another one'
FROM read_json('last-part.json', format = 'unstructured', columns = {part: 'VARCHAR', as_of: 'VARCHAR', digest: 'VARCHAR'}) AS named
WHERE NOT EXISTS (
  FROM parts WHERE filename LIKE '%' || named.part || '/manifest.json' AND parts.digest = named.digest AND parts.as_of = named.as_of
)
UNION ALL
SELECT what || ' ' || currency || ': the tables have ' || coalesce(counted.amount, 'nothing') || ', the manifest says ' || coalesce(said.amount, 'nothing')
FROM counted FULL JOIN said USING (what, currency)
WHERE plain(counted.amount) IS DISTINCT FROM plain(said.amount);
