/**
 * `commission keys rotate`: makes the next key, with the name, the permissions and the networks of a key in use.
 * Promises: the key in use stays valid until somebody revokes it. No key follows one that was revoked before: the
 * events that are published are projected before the key in use is read, and it is read again afterwards. No event
 * gives it an end: clients change to the next key in their own time, and the operator sees in the logs of the API when
 * the old id no longer asks.
 */

import { isKeyPermission } from '../../schemas/values.ts'
import type { ClusterContext } from '../context.ts'
import { CommandError, type ExitCode, exitCodes } from '../failures.ts'
import { assertKeysReadable, type CreateKeyOptions, createAndTell, findKeys, untilAllProjected } from './keys.ts'

export type RotateKeyOptions = Omit<CreateKeyOptions, 'name' | 'permissions' | 'networks'> & {
  readonly id: string
  /** By default that of the key in use. */
  readonly name: string | undefined
  /** By default those of the key in use. */
  readonly networks: string[] | undefined
}

export const rotateKey = async (options: RotateKeyOptions, context: ClusterContext): Promise<ExitCode> => {
  const { org, id, expiresAt } = options
  // A revocation may be missing.
  await assertKeysReadable('Nothing was published', context)
  await untilAllProjected(options.waitSeconds, context)
  const read = async () => (await findKeys(org, context)).find(known => known.id === id)
  const key = await read()
  if (key === undefined) throw new CommandError(`${org} has no key ${id} (npx commission keys list --org ${org})`)
  if (key.revoked) throw new CommandError(`${id} of ${org} is revoked: make a new key (npx commission keys create)`)
  const name = options.name ?? key.name
  if (name === null) throw new CommandError(`the name of ${id} was not stored when it was made: give one with --name`)
  if (key.expires_at !== null && expiresAt === null) {
    throw new CommandError(`${id} expires at ${key.expires_at}: say when the next key does, with --expires-at`)
  }
  const permissions = key.permissions.filter(isKeyPermission)
  const networks = options.networks ?? (key.allowed_networks && [...key.allowed_networks])
  const next = await createAndTell({ ...options, name, permissions, networks }, context, id)
  if ((await read())?.revoked !== false) {
    const advice = `revoke ${next} now: npx commission keys revoke --org ${org} --id ${next}`
    throw new CommandError(`${id} was revoked meanwhile, and the API accepts ${next}: ${advice}`)
  }
  context.say(
    `The API accepts ${next} now, and ${id} as before. When every client has the new key, revoke the old one:`,
  )
  context.say(`npx commission keys revoke --org ${org} --id ${id}`)
  return exitCodes.done
}
