/** The Prometheus metrics that every process has: its program and version, and what Node measures. */
import { collectDefaultMetrics, Gauge, Registry } from 'prom-client'
import packageJson from '../../package.json' with { type: 'json' }

/** Creates the registry of a process. Its program registers its own metrics there. */
export const createProcessMetrics = (program: 'api' | 'projector'): Registry => {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  new Gauge({
    name: 'commission_build_info',
    help: '1, with the program and its version',
    labelNames: ['program', 'version'],
    registers: [registry],
  }).set({ program, version: packageJson.version }, 1)
  return registry
}
