/**
 * The faults in which the alerts of deploy/monitoring/rules.yml fire. test/flow/alerts.long.test.ts makes each of them
 * with real processes, beside a real Prometheus, under rules whose windows and waits are shorter.
 *
 * `fires`: the alerts that are for this fault. Every alert is here exactly once: test/monitoring/rules.test.ts.
 * `mayFollow`: alerts for a consequence of the fault, which fire if it lasts. No other alert may fire.
 *
 * Real hours and days of a window are in promtool only: the cases of deploy/monitoring/rules.test.yml.
 */
export type AlertFault = { readonly fires: readonly string[]; readonly mayFollow?: readonly string[] }

const lateReaders = ['CommissionFreshnessBurnsFast', 'CommissionFreshnessBurnsSlowly', 'CommissionStale']

export const alertFaults = {
  'the API is killed': { fires: ['CommissionApiAbsent'] },
  'the projector is frozen': { fires: ['CommissionProjectorAbsent'], mayFollow: lateReaders },
  'the projector is killed and started again, three times': {
    fires: ['CommissionProcessRestarts'],
    mayFollow: ['CommissionProjectorAbsent', 'CommissionPartitionWithoutOwner', ...lateReaders],
  },
  'Elasticsearch accepts no write of an index while records come': {
    fires: ['CommissionElasticsearchRefuses', 'CommissionPartitionStuck', ...lateReaders],
  },
  'the API does not reach Elasticsearch': {
    fires: ['CommissionServedTimeUnknown', 'CommissionAvailabilityBurnsFast', 'CommissionAvailabilityBurnsSlowly'],
  },
  'records come faster than a slow Elasticsearch takes them': {
    fires: ['CommissionLagGrows'],
    mayFollow: ['CommissionPartitionStuck', ...lateReaders],
  },
  'a projector joins the group beside a frozen one': {
    fires: ['CommissionPartitionWithoutOwner'],
    mayFollow: lateReaders,
  },
  'a record breaks a rule': { fires: ['CommissionRecordsParked'] },
  'an index of a spare generation is deleted': { fires: ['CommissionGenerationFailed'] },
  'the clock of the projector is a minute ahead': { fires: ['CommissionClockWrong'] },
  'a promise of the API is rejected and nobody listens': { fires: ['CommissionApiDefect'] },
  'more clients connect than the API accepts': { fires: ['CommissionConnectionsTurnedAway'] },
  'Redis is killed': { fires: ['CommissionRateCountedAlone'] },
} satisfies Readonly<Record<string, AlertFault>>
export type AlertFaultName = keyof typeof alertFaults
