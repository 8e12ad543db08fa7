/** Loads modules of kafkajs that are not public. The kafkajs version is pinned, and a test uses each of them. */
import { createRequire } from 'node:module'

const load = createRequire(import.meta.url)

/** @param path below `src` */
export const loadKafkajs = <Module>(path: string): Module => load(`kafkajs/src/${path}`)
