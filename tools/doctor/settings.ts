/** The settings that an identity reads. */

import {
  apiSettings,
  elasticsearchSettings,
  kafkaSettings,
  projectorSettings,
  sealSettings,
} from '../../core/runtime/index.ts'
import { type AccessIdentity, type IdentityName, identities } from '../../schemas/access.ts'
import { sealUseOf } from './seal-keys.ts'

export const settingsOf = (name: IdentityName) => {
  if (name === 'api') return apiSettings
  if (name === 'projector') return projectorSettings
  const sealed = sealUseOf(name) && sealSettings
  if (name === 'projection' || name === 'grow') return { ...projectorSettings, ...sealed }
  const { kafka, elasticsearch }: AccessIdentity = identities[name]
  return { ...(kafka.length > 0 && kafkaSettings), ...(elasticsearch && elasticsearchSettings), ...sealed }
}

/** Returns the topic of the audit log; undefined if AUDIT_LOG names no topic. */
export const auditTopicIn = ({ AUDIT_LOG: target }: Readonly<Record<string, unknown>>): string | undefined =>
  /^kafka:(.+)$/.exec(String(target))?.[1]

/** Returns the settings that names of topics, groups and indices are made of. None is secret. */
export const valuesIn = (settings: Readonly<Record<string, unknown>>): Record<string, string> => ({
  AUDIT_TOPIC: auditTopicIn(settings) ?? 'none',
  ...Object.fromEntries(
    ['KAFKA_EVENTS_TOPIC', 'KAFKA_API_KEYS_TOPIC', 'KAFKA_GROUP_ID', 'ELASTICSEARCH_INDEX_PREFIX'].flatMap(name =>
      settings[name] === undefined ? [] : [[name, String(settings[name])]],
    ),
  ),
})
