/**
 * Asks what a projector asks at its start, for both streams, and changes nothing. In: the settings of the projector.
 * Out: a finding for each generation; *failed* with the stop code if a projector would not start.
 */

import { assertRulesKnown, type InspectSteps, inspectCommon, inspectStream } from '../../core/projection/index.ts'
import { StopError } from '../../core/runtime/index.ts'
import { type Generations, readGeneration, type ToldSetting, type UnreadOfAutoCreate } from '../../core/store/index.ts'
import { API_KEYS_GENERATION } from '../../schemas/stored/documents.ts'
import type { Attempt } from './attempts.ts'
import { type Finding, failed, ok, warning } from './finding.ts'

const CHECK = 'projection'

/** @param stepsOf gives requests that end with the signal */
export const checkStart = async (attempt: Attempt, stepsOf: (signal: AbortSignal) => InspectSteps): Promise<void> => {
  const tryPart = (part: (steps: InspectSteps) => Promise<readonly Finding[]>) =>
    attempt(CHECK, signal => part(stepsOf(signal)).catch(refusal))

  const found: { generations?: Generations | undefined } = {}
  await tryPart(async steps => {
    const common = await inspectCommon(steps)
    found.generations = common.generations
    return [
      ...(common.generations === undefined ? [ok(CHECK, 'nothing is projected yet')] : []),
      ...(common.unread === undefined ? [] : [unreadFinding(common.unread)]),
      ...(common.unguarded === undefined
        ? []
        : [warning(CHECK, common.unguarded, 'docs/access.md has the rights of a projector')]),
      ...common.told.map(settingFinding),
    ]
  })
  const { generations } = found
  if (generations === undefined) return
  const { live, active } = generations
  let ours = 0
  for (const generation of active) {
    await tryPart(async steps => {
      try {
        const inspected = await inspectStream(generation, 'events', steps)
        if (inspected === undefined) return [await findingOfOthers(generation, generation === live, steps)]
        ours++
        return findingsOf(generation, steps.topics.events, inspected.told)
      } catch (error) {
        ours++
        // A projector leaves a spare generation, and projects the others.
        if (generation === live || !(error instanceof StopError)) throw error
        return [warning(CHECK, `spare generation ${generation} would not be projected: ${textOf(error)}`, ADVICE)]
      }
    })
  }
  if (ours === 0) {
    await tryPart(async steps => {
      await assertRulesKnown(generations, steps)
      return []
    })
  }
  await tryPart(async steps => {
    const inspected = await inspectStream(API_KEYS_GENERATION, 'api-keys', steps)
    return findingsOf(API_KEYS_GENERATION, steps.topics['api-keys'], inspected?.told ?? [])
  })
}

/** While a topic grows, some projectors have the topic before, and others the new one. */
const findingOfOthers = async (generation: string, isLive: boolean, steps: InspectSteps): Promise<Finding> => {
  const found = await readGeneration(generation, steps)
  const ours = steps.topics.events
  if (found === undefined || found.topic === ours) {
    return warning(CHECK, `generation ${generation} has other rules: another program projects it`)
  }
  const name = isLive ? `the live generation ${generation}` : `generation ${generation}`
  const detail = `${name} is of topic ${found.topic}, not ${ours}: projectors with that KAFKA_EVENTS_TOPIC project it`
  return warning(CHECK, detail, 'docs/growing.md says when this setting changes')
}

const findingsOf = (generation: string, topic: string, told: readonly ToldSetting[]): Finding[] => [
  ok(CHECK, `generation ${generation} is of topic ${topic}, and its indices and positions are whole`),
  ...told.map(settingFinding),
]

const settingFinding = ({ index, setting, expected, got, consequence, reason }: ToldSetting): Finding => {
  const check = `index ${index}`
  const detail = `index.${setting}: expected ${expected}, got ${got}; ${reason}`
  const mend = 'docs/access.md says what a projector puts back'
  if (consequence !== 'put back or stop') return warning(check, detail, mend)
  return failed(check, `a projector that may not put it back would stop: index_unsuitable: ${detail}`, mend)
}

const unreadFinding = (unread: UnreadOfAutoCreate): Finding => {
  const detail = `${unread} cannot be read: an index template of others could let Elasticsearch create an index`
  const right = unread === 'index templates' ? 'manage_index_templates' : 'monitor on the cluster'
  return warning(CHECK, `${detail} automatically`, `give the right ${right}`)
}
const ADVICE = 'docs/operating.md has each stop code'
const textOf = ({ code, message }: StopError): string => `${code}: ${message}`

const refusal = (error: unknown): Finding[] => {
  if (!(error instanceof StopError)) throw error
  return [failed(CHECK, `a projector would stop: ${textOf(error)}`, ADVICE)]
}
