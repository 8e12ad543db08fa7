/** The projection library: the flow from a log to the store, for the projector, a rebuild and a replay. */
export { assertRulesKnown, type InspectSteps, inspectCommon, inspectStream } from './inspect-start.ts'
export {
  BALANCES,
  BULKS_IN_FLIGHT,
  DRAIN_TIMEOUT_MS,
  GENERATIONS_POLL_MS,
  STOP_TIMEOUT_MS,
  STREAMS_STOP_TIMEOUT_MS,
} from './limits.ts'
export { createProjectorMetrics, type StoredParked, type StreamStatus } from './progress/metrics.ts'
export { type RebuildContext, type RebuildProgress, rebuildGeneration } from './rebuild.ts'
export { kafkaLog } from './stream/kafka-log.ts'
export {
  type RunningStream,
  type StreamContext,
  type StreamOptions,
  startStream,
  streamOptions,
  type TestHooks,
} from './stream/stream.ts'
