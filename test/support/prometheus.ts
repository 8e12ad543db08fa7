/** A test's own Prometheus with the rules of deploy/monitoring/, if the machine has one (Debian: prometheus). */
import { expect } from 'vitest'
import { type PrometheusOptions, runPrometheus } from './run-prometheus.ts'
import type { Scope } from './scope.ts'

export type Series = { readonly metric: Readonly<Record<string, string>>; readonly value: number }
export type Alert = { readonly name: string; readonly state: 'pending' | 'firing' }

export type Prometheus = {
  /** The series that an expression has now. */
  readonly query: (expression: string) => Promise<Series[]>
  readonly alerts: () => Promise<Alert[]>
  /** The last error of each rule that has one. */
  readonly ruleErrors: () => Promise<string[]>
}

/** Starts a Prometheus that evaluates the rules every second, until the end of the test. */
export const startPrometheus = async (scope: Scope, options: PrometheusOptions): Promise<Prometheus> => {
  const { ask, stop } = await runPrometheus(options)
  scope.onTestFinished(stop)
  return {
    query: async expression => {
      type Result = { readonly metric: Record<string, string>; readonly value: [number, string] }
      const parameters = new URLSearchParams({ query: expression })
      const { result } = await ask<{ result: Result[] }>(`query?${parameters}`)
      return result.map(({ metric, value }) => ({ metric, value: Number(value[1]) }))
    },
    alerts: async () => {
      type Found = { readonly labels: { readonly alertname: string }; readonly state: Alert['state'] }
      const { alerts } = await ask<{ alerts: Found[] }>('alerts')
      return alerts.map(({ labels, state }) => ({ name: labels.alertname, state }))
    },
    ruleErrors: async () => {
      type Group = { readonly rules: { readonly name: string; readonly lastError?: string }[] }
      const { groups } = await ask<{ groups: Group[] }>('rules')
      expect(groups.length).toBeGreaterThan(0)
      return groups.flatMap(({ rules }) =>
        rules.flatMap(({ name, lastError }) => (lastError ? [`${name}: ${lastError}`] : [])),
      )
    },
  }
}

/** Seconds of a window in a test: several scrapes of three seconds, and less than the patience of a test. */
const windowSeconds = (minutes: number): number => Math.min(60, minutes * 4)
const unitMinutes: Readonly<Record<string, number>> = { m: 1, h: 60, d: 1_440 }
/** Five scrapes: until one of a new process, its absence is no alert, nor while a busy machine pauses. */
const FOR_SECONDS = 15
/** Ages in seconds. A busy machine may make records visible only after more than ten, although nothing is broken. */
const AGES = [
  { rule: 'commission:served_age:seconds > 60\n', inTests: 'commission:served_age:seconds > 30\n' },
  { rule: 'commission:served_age:seconds > bool 10)\n', inTests: 'commission:served_age:seconds > bool 30)\n' },
]

/** Returns the rules with the ages of tests. */
export const patientRules = (rules: string): string =>
  AGES.reduce((text, { rule, inTests }) => {
    expect(text).toContain(rule)
    return text.replace(rule, inTests)
  }, rules)

/**
 * Returns the rules with shorter windows and waits. Thresholds stay, but for ages. Two windows stay too, since no alert
 * waits for their end: that of restarts, of which three take a busy machine minutes, and that in which the number of
 * parked records was known last.
 */
export const soonerRules = (rules: string): string =>
  patientRules(rules)
    .replaceAll(/(?<!process_start_time_seconds|parked:records)\[(\d+)([mhd])\]/g, (_, count: string, unit: string) => {
      return `[${windowSeconds(Number(count) * (unitMinutes[unit] ?? 1))}s]`
    })
    .replaceAll(/ offset (\d+)m/g, (_, count: string) => ` offset ${windowSeconds(Number(count))}s`)
    .replaceAll(/^( +for: )\d+m$/gm, `$1${FOR_SECONDS}s`)
