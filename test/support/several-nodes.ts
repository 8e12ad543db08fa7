/** Whether this machine can run several nodes of Kafka or Elasticsearch, and limits for tests that do. */
import { findServiceSource } from '../../services/locate.ts'

const source = await findServiceSource({ ...process.env, KAFKA_BROKERS: undefined, ELASTICSEARCH_URL: undefined })
/** In Docker, several nodes would need their own network. */
export const canRunSeveralNodes = source.from === 'jvm'
if (!canRunSeveralNodes) console.log('left out: several nodes (they run as Java processes only)')

/** Milliseconds until several nodes must serve. All of them share the cores of the machine. */
export const START_SEVERAL_MS = 240_000
export const seconds = (milliseconds: number): string => `${(milliseconds / 1_000).toFixed(1)} s`
