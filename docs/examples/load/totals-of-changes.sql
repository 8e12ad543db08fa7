-- Owed and paid by period and currency, from the changes that dlt has loaded: equal to the API's /totals as of the last
-- of them. A replaced payout is owed no more. The query fails if the changes are not 1, 2, 3 and so on, and where a cast
-- would round: with more than 10 decimal places, write a larger number in place of each 10.
CREATE OR REPLACE TEMP MACRO exact(amount) AS CASE
  WHEN length(rtrim(split_part(amount, '.', 2), '0')) > 10 THEN error('an amount has more than 10 decimal places')
  ELSE CAST(amount AS DECIMAL(38, 10)) END;
CREATE OR REPLACE TEMP MACRO complete() AS (SELECT CASE
  WHEN count(*) = count(DISTINCT sequence) AND count(*) = max(sequence) THEN true
  ELSE error('changes are missing or there twice: load all changes anew') END FROM pay.changes);
SELECT record__period_id AS period_id, record__currency AS currency,
       coalesce(sum(exact(record__net_amount)), 0) AS owed, count(record__net_amount) AS payouts,
       coalesce(sum(exact(record__amount)), 0) AS paid, count(record__amount) AS records
FROM pay.changes
WHERE kind IN ('payouts', 'payroll_files') AND complete()
  AND id NOT IN (SELECT supersedes_id FROM pay.changes WHERE supersedes_id IS NOT NULL)
GROUP BY ALL ORDER BY ALL;
