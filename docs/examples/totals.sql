-- Owed and paid amounts by period, currency and rep, from the Parquet tables of an export. Run it in their directory.
-- A row without a rep is the total of the period and currency: it equals the API's /totals. Sums of decimals are exact.
WITH amounts AS (
  SELECT period_id, currency, rep_id, net_amount AS owed, NULL AS paid FROM 'payouts.parquet'
  UNION ALL
  SELECT period_id, currency, rep_id, NULL AS owed, amount AS paid FROM 'payroll_files.parquet'
)
SELECT period_id, currency, rep_id,
       coalesce(sum(owed), 0) AS owed, count(owed) AS payouts,
       coalesce(sum(paid), 0) AS paid, count(paid) AS records
FROM amounts, read_json('manifest.json', format = 'unstructured', columns = {"after": 'JSON'}) AS manifest
-- A later part of a copy has replaced payouts too.
WHERE CASE WHEN manifest."after" IS NULL THEN true ELSE error('this is a part of a copy: use current.sql on the whole copy') END
GROUP BY GROUPING SETS ((period_id, currency), (period_id, currency, rep_id))
ORDER BY period_id, currency, rep_id NULLS FIRST;
