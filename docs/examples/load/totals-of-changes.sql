-- Owed and paid by period and currency, from the changes that dlt has loaded: equal to the API's /totals as of the last
-- of them. A replaced payout is owed no more. With more than 10 decimal places, write a larger number: a cast rounds.
SELECT record__period_id AS period_id, record__currency AS currency,
       coalesce(sum(CAST(record__net_amount AS DECIMAL(38, 10))), 0) AS owed, count(record__net_amount) AS payouts,
       coalesce(sum(CAST(record__amount AS DECIMAL(38, 10))), 0) AS paid, count(record__amount) AS records
FROM pay.changes
WHERE kind IN ('payouts', 'payroll_files')
  AND id NOT IN (SELECT supersedes_id FROM pay.changes WHERE supersedes_id IS NOT NULL)
GROUP BY ALL ORDER BY ALL;
