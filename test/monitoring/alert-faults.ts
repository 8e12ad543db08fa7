/**
 * The faults in which the alerts of deploy/monitoring/rules.yml fire. The tests test/flow/alerts-*.long.test.ts make
 * them in real processes, beside a real Prometheus, under rules whose windows and waits are shorter.
 *
 * `fires`: the alerts that are for this fault. Every alert is here exactly once: test/monitoring/rules.test.ts.
 * `mayFollow`: alerts for a consequence of the fault, which fire if it lasts. No other alert may fire.
 *
 * Real hours and days of a window are in promtool only: the cases of deploy/monitoring/rules.test.yml.
 */
export type AlertFault = { readonly fires: readonly string[]; readonly mayFollow?: readonly string[] }
type AlertFaults = Readonly<Record<string, AlertFault>>

const lateReaders = ['CommissionFreshnessBurnsFast', 'CommissionFreshnessBurnsSlowly', 'CommissionStale']

/** In test/flow/alerts-api.long.test.ts. */
export const apiFaults = {
  'a promise of the API is rejected and nobody listens': { fires: ['CommissionApiDefect'] },
  'more clients connect than the API accepts': { fires: ['CommissionConnectionsTurnedAway'] },
  'Redis is killed': { fires: ['CommissionRateCountedAlone'] },
  'the API does not reach Elasticsearch': {
    fires: ['CommissionApiNotReady', 'CommissionAvailabilityBurnsFast', 'CommissionAvailabilityBurnsSlowly'],
  },
  'the API is killed': { fires: ['CommissionApiAbsent'] },
} satisfies AlertFaults

/** In test/flow/alerts-projector.long.test.ts. */
export const projectorFaults = {
  'a record breaks a rule': { fires: ['CommissionRecordsParked'] },
  'an index of a spare generation is deleted': { fires: ['CommissionGenerationFailed'] },
  'Elasticsearch accepts no write of an index while records come': {
    fires: ['CommissionElasticsearchRefuses', 'CommissionPartitionStuck', ...lateReaders],
  },
  'records come faster than a slow Elasticsearch takes them': {
    fires: ['CommissionLagGrows'],
    mayFollow: ['CommissionPartitionStuck', 'CommissionElasticsearchRefuses', ...lateReaders],
  },
  'a projector of another installation is in the consumer group': {
    fires: ['CommissionPartitionWithoutOwner'],
    mayFollow: lateReaders,
  },
  'the clock of the projector is a minute ahead': { fires: ['CommissionClockWrong'] },
  'the projector is killed and started again, three times': {
    fires: ['CommissionProcessRestarts'],
    mayFollow: ['CommissionProjectorAbsent', 'CommissionPartitionWithoutOwner', ...lateReaders],
  },
  'the projector is frozen': { fires: ['CommissionProjectorAbsent'], mayFollow: lateReaders },
  'a partition waits to be read again': { fires: ['CommissionPartitionNotServed'], mayFollow: lateReaders },
} satisfies AlertFaults
